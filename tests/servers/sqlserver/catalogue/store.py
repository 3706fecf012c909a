"""Looks up databases, tables and modules, and keeps what it found until a definition changes."""

from __future__ import annotations

import json
import threading
from typing import Any

from ..backend import Backend
from ..datatypes import SqlType
from .literals import quote
from .model import Column, Database, Index, Table


class Catalogue:
    """The definitions that are committed; one connection reads them for all sessions."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._lock = threading.RLock()
        self.version = 0
        self._found: dict[tuple[Any, ...], Any] = {}

    def changed(self) -> None:
        """Forget everything: definitions were changed and committed."""
        with self._lock:
            self.version += 1
            self._found.clear()

    def reader(self, backend: Backend | None = None) -> Reader:
        """A reader: of committed definitions, or of those that a session's own transaction sees."""
        if backend is None:
            return Reader(self._backend, self._lock, self._found)
        return Reader(backend, threading.RLock(), {})


class Reader:
    """Finds definitions by name."""

    def __init__(self, backend: Backend, lock: threading.RLock, found: dict[tuple[Any, ...], Any]) -> None:
        self._backend = backend
        self._lock = lock
        self._found = found

    def database(self, name: str) -> Database | None:
        """A database by its name."""
        return self._cached(
            ("database", name.lower()), f"WHERE lower(name) = {quote(name.lower())}", self._read_database
        )

    def object(self, database_id: int, schema: str, name: str) -> Table | None:
        """A table, view, function or procedure by its name."""
        names = f"lower(schema_name) = {quote(schema.lower())} AND lower(name) = {quote(name.lower())}"
        where = f"WHERE database_id = {database_id} AND {names}"
        return self._cached(("object", database_id, schema.lower(), name.lower()), where, self._read_table)

    def by_id(self, object_id: int) -> Table | None:
        """A table by its number."""
        return self._cached(("id", object_id), f"WHERE object_id = {object_id}", self._read_table)

    def schema_id(self, database_id: int, name: str) -> int | None:
        """A schema's number."""
        where = f"WHERE database_id = {database_id} AND lower(name) = {quote(name.lower())}"
        return self._cached(("schema", database_id, name.lower()), where, self._read_schema)

    def alias_type(self, database_id: int, name: str) -> tuple[int, str, bool] | None:
        """The number, base type and nullability of a type that a user has made."""
        where = f"WHERE database_id = {database_id} AND lower(name) = {quote(name.lower())}"
        return self._cached(("type", database_id, name.lower()), where, self._read_type)

    def _cached(self, key: tuple[Any, ...], where: str, read: Any) -> Any:
        with self._lock:
            if key not in self._found:
                self._found[key] = read(where)
            return self._found[key]

    def _read_database(self, where: str) -> Database | None:
        rows = self._backend.run(
            "SELECT database_id, name, collation_name, is_cdc_enabled, snapshot_isolation_state,"
            " read_committed_snapshot"
            f" FROM cat.databases {where}"
        ).rows
        if not rows:
            return None
        number, name, collation, cdc, snapshot, committed = rows[0]
        return Database(int(str(number)), str(name), str(collation), cdc == "1", snapshot == "1", committed == "1")

    def _read_schema(self, where: str) -> int | None:
        found = self._backend.scalar(f"SELECT schema_id FROM cat.schemas {where}")
        return None if found is None else int(found)

    def _read_type(self, where: str) -> tuple[int, str, bool] | None:
        rows = self._backend.run(f"SELECT user_type_id, declared, is_nullable FROM cat.types {where}").rows
        return (int(str(rows[0][0])), str(rows[0][1]), rows[0][2] == "1") if rows else None

    def _read_table(self, where: str) -> Table | None:
        found = self._backend.scalar(f"SELECT description FROM cat.described_objects {where}")
        if found is None:
            return None
        parts = json.loads(found)
        return Table(
            object_id=parts["object_id"],
            database_id=parts["database_id"],
            database=parts["database"],
            schema=parts["schema"],
            name=parts["name"],
            columns=tuple(_column(*values) for values in parts["columns"]),
            indexes=tuple(_index(*values) for values in parts["indexes"]),
            kind=parts["kind"],
            definition=parts["definition"],
            captured=parts["captured"],
            shipped=bool(parts["shipped"]),
            filters=tuple((condition, exempt) for condition, exempt in parts["filters"]),
        )


def _column(
    name: str,
    number: int,
    kind: str,
    length: int,
    precision: int,
    scale: int,
    collation: str | None,
    alias: int | None,
    nullable: int,
    seed: int | None,
    increment: int | None,
    computed: str | None,
    default: str | None,
    default_name: str | None,
    rowguid: int,
    masked: bool,
) -> Column:
    identity = None if seed is None or increment is None else (seed, increment)
    declared = SqlType(kind, length, precision, scale, collation, alias)
    return Column(
        name, number, declared, bool(nullable), identity, computed, default, default_name, bool(rowguid), masked
    )


def _index(
    name: str, number: int, kind: int, unique: int, primary: int, constraint: int, columns: list[list[int]]
) -> Index:
    keys = tuple((column, bool(descending)) for column, descending, included in columns if not included)
    included = tuple(column for column, _, is_included in columns if is_included)
    return Index(name, number, kind == 1, bool(unique), bool(primary), bool(constraint), keys, included)
