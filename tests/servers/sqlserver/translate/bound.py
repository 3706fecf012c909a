"""Translated expressions, and the names that a query's expressions can refer to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..catalogue.model import Column, SystemView, Table
from ..datatypes import INT, SqlType
from ..tds.collations import ignores_case
from ..tsql.errors import error, invalid_column


@dataclass(frozen=True)
class Bound:
    """An expression in PostgreSQL's SQL, with the type it has in SQL Server."""

    sql: str
    kind: SqlType
    nullable: bool = True
    untyped_null: bool = False
    column: Column | None = None
    is_text_literal: bool = False

    @property
    def key(self) -> str:
        """What is compared, sorted and grouped in place of the value: collations ignore case and trailing blanks."""
        if self.kind.family == "string":
            trimmed = f"rtrim({self.sql})"
            return f"lower({trimmed})" if ignores_case(self.kind.collation) else trimmed
        if self.kind.name == "datetimeoffset":
            return f"substring({self.sql}, 1, 8)"
        return self.sql

    @property
    def has_key(self) -> bool:
        """Whether the key differs from the value."""
        return self.kind.family == "string" or self.kind.name == "datetimeoffset"

    def as_(self, sql: str, kind: SqlType | None = None) -> Bound:
        """Another expression made of this one."""
        return Bound(sql, kind or self.kind, self.nullable)


NULL = Bound("NULL::int4", INT, untyped_null=True)


def null_of(kind: SqlType) -> Bound:
    """A null of a type."""
    return Bound(f"NULL::{kind.storage}", kind)


@dataclass
class Source:
    """Something in FROM: a table, view, function or query; `alias` qualifies its columns in PostgreSQL."""

    alias: str
    names: tuple[str, ...]
    columns: list[tuple[str, Bound]]
    table: Table | None = None
    view: SystemView | None = None
    hints: frozenset[str] = frozenset()

    def answers_to(self, qualifier: tuple[str, ...]) -> bool:
        """Whether a qualifier such as t, dbo.t or db.dbo.t names this source."""
        names = tuple(name.lower() for name in self.names)
        return len(qualifier) <= len(names) and all(
            not asked or asked == name for asked, name in zip(qualifier[::-1], names[::-1], strict=False)
        )

    def outer(self) -> None:
        """Note that the source's columns may be null because of an outer join."""
        self.columns = [(name, replace(bound, nullable=True)) for name, bound in self.columns]


@dataclass
class Scope:
    """The sources of a query, and the query around it."""

    sources: list[Source] = field(default_factory=list)
    parent: Scope | None = None

    def find(self, name: str, qualifier: tuple[str, ...] = ()) -> Bound:
        """The column of a name; an error if there is none, or more than one."""
        scope: Scope | None = self
        wanted = name.lower()
        asked = tuple(part.lower() for part in qualifier)
        while scope is not None:
            found = [
                bound
                for source in scope.sources
                if not asked or source.answers_to(asked)
                for column, bound in source.columns
                if column.lower() == wanted
            ]
            if len(found) > 1:
                raise error(209, name)
            if found:
                return found[0]
            scope = scope.parent
        if qualifier:
            full = ".".join((*qualifier, name))
            if not any(source.answers_to(asked) for source in self.sources):
                raise error(4104, full)
        raise invalid_column(name)

    def all_columns(self, qualifier: tuple[str, ...] = ()) -> list[tuple[str, Bound]]:
        """What * stands for."""
        asked = tuple(part.lower() for part in qualifier)
        sources = [source for source in self.sources if not asked or source.answers_to(asked)]
        if not sources:
            raise error(107, ".".join(qualifier))
        return [column for source in sources for column in source.columns]
