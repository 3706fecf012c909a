"""Describes a PostgreSQL type as the catalog has it, with domains resolved to their base types."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass


@dataclass(frozen=True, slots=True)
class PgType:
    """`name` is pg_type.typname of the base type; `printed` names the type for people.

    `labels` are an enum's, in order; `element` is an array's; `domain` tells whether the type is one. `output` is
    the SQL that prints a value ({}) as COPY does. `own` is the name of a domain; `qualified`
    the type's own name with its schema if the search path does not find it.
    """

    name: str
    printed: str
    labels: tuple[str, ...] = ()
    element: PgType | None = None
    _: KW_ONLY
    domain: bool = False
    output: str = "{}"
    own: str = ""
    qualified: str = ""
