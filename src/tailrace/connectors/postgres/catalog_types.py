"""A PostgreSQL type as the catalog knows it, domains resolved to what they stand for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PgType:
    """`name` is pg_type.typname of the base type; `labels` are an enum's, in order; `printed` names it for people."""

    name: str
    printed: str
    labels: tuple[str, ...] = ()
