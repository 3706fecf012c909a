"""A PostgreSQL table that keeps its own history by triggers, and random transactions that change it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from random import Random
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.sinks.replica.target import read_table

Row = tuple[Any, ...]
AS_OF = "SELECT id, v, document FROM history WHERE valid_from <= $1 AND (valid_to > $1 OR valid_to IS NULL) ORDER BY id"
# Documents are large enough for the log not to repeat them.
SCHEMA = """
CREATE TABLE items (id int PRIMARY KEY, v int, document text);
ALTER TABLE items ALTER document SET STORAGE EXTERNAL;
CREATE TABLE kept (
    n bigserial PRIMARY KEY, x xid8 DEFAULT pg_current_xact_id(), gone int, id int, v int, document text
);
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN INSERT INTO kept (gone) VALUES (NULL); RETURN NULL; END IF;
    IF TG_OP <> 'INSERT' THEN INSERT INTO kept (gone) VALUES (OLD.id); END IF;
    IF TG_OP <> 'DELETE' THEN INSERT INTO kept (id, v, document) VALUES (NEW.id, NEW.v, md5(NEW.document)); END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER keep AFTER INSERT OR UPDATE OR DELETE ON items FOR EACH ROW EXECUTE FUNCTION keep();
CREATE TRIGGER empty AFTER TRUNCATE ON items EXECUTE FUNCTION keep();
INSERT INTO items SELECT n, 0, repeat(md5(n::text), 100) FROM generate_series(1, 5) n;
"""


def transact(connections: Sequence[psycopg.Connection[Any]], draw: Random, count: int) -> None:
    """Random transactions of sessions that overlap, each with keys of its own, committed one after another."""
    for _ in range(count):
        order = draw.sample(range(len(connections)), draw.randint(1, len(connections)))
        for connection in order:
            connections[connection].execute("BEGIN")
        for number in draw.choices(order, k=3 * len(order)):
            for statement in _statements(draw, number):
                connections[number].execute(statement.encode())
        if len(order) == 1 and draw.random() < 0.1:
            connections[order[0]].execute("TRUNCATE items")
            if draw.random() < 0.5:
                connections[order[0]].execute(_insert(draw, _key(draw, order[0])).encode())
        for connection in draw.sample(order, len(order)):
            connections[connection].execute("ROLLBACK" if draw.random() < 0.1 else "COMMIT")


def _key(draw: Random, session: int) -> int:
    return 1 + 2 * draw.randrange(6) + session


def _insert(draw: Random, key: int) -> str:
    return f"INSERT INTO items VALUES ({key}, 0, repeat(md5('{draw.random()}'), 100)) ON CONFLICT DO NOTHING"


def _statements(draw: Random, session: int) -> Iterator[str]:
    """Creations, changes of values and of keys, deletions, and deletions that are made good at once."""
    key, other = _key(draw, session), _key(draw, session)
    match draw.randrange(6):
        case 0 | 1:
            yield _insert(draw, key)
        case 2:
            yield f"UPDATE items SET v = v + 1 WHERE id = {key}"
        case 3:
            free = f"NOT EXISTS (SELECT FROM items WHERE id = {other})"
            yield f"UPDATE items SET v = 7, id = {other} WHERE id = {key} AND {free}"
        case 4:
            yield f"DELETE FROM items WHERE id = {key}"
        case 5:
            yield f"DELETE FROM items WHERE id = {key}"
            yield _insert(draw, key)


class Kept:
    """The history that the database keeps: its rows after each commit, by time, from some moment on."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        query = """
            SELECT pg_xact_commit_timestamp(x::xid) AS at, gone, id, v, document FROM kept ORDER BY at, n
        """
        self._rows: dict[int, Row] = {}
        self.states: list[tuple[datetime, list[Row]]] = []
        for at, gone, id_, v, document in connection.execute(query).fetchall():
            if gone is not None:
                self._rows.pop(gone, None)
            elif id_ is None:
                self._rows.clear()
            else:
                self._rows[id_] = (id_, v, document)
            if self.states and self.states[-1][0] == at:
                self.states.pop()
            self.states.append((at, sorted(self._rows.values())))

    def differences(self, since: datetime, as_of: Callable[[datetime], list[Row]], most: int = 500) -> list[datetime]:
        """The moments of so many commits, and before these, at which a view has other rows than the database."""
        found, step = [], 1 + len(self.states) // most
        for (before, old), (at, rows) in list(zip(self.states, self.states[1:], strict=False))[::-step]:
            if before < since:
                continue
            between = before + (at - before) / 2
            if as_of(at) != rows or as_of(between) != old:
                found.append(at)
        return found


class View:
    """A table of history, asked by SQL. Documents are compared by their hashes."""

    def __init__(self, root: str, options: Mapping[str, str] | None = None) -> None:
        rows = read_table(root, "public.items", options)
        hashes = [hashlib.md5(text.encode()).hexdigest() for text in rows.column("document").to_pylist()]
        self.rows = rows.set_column(rows.column_names.index("document"), "document", pa.array(hashes, pa.string()))
        self._connection = duckdb.connect()
        # DuckDB compares moments with a zone by an extension that it would download.
        plain = [name for name in self.rows.column_names if name not in ("valid_from", "valid_to", "_commit_time")]
        times = {name: self.rows.column(name).cast(pa.timestamp("us")) for name in ("valid_from", "valid_to")}
        self._connection.register("history", pa.table({**{name: self.rows.column(name) for name in plain}, **times}))

    def as_of(self, at: datetime) -> list[Row]:
        return self._connection.execute(AS_OF, [at.astimezone(timezone.utc).replace(tzinfo=None)]).fetchall()

    @property
    def begun(self) -> datetime:
        """When the history begins: the rows of the snapshot hold from then on."""
        read = self.rows.filter(pc.equal(self.rows.column("_op"), "r"))
        found: datetime = min(read.column("valid_from").to_pylist())
        return found
