"""A change of a table's definition in the log: the new definition, and what was renamed or dropped."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any

from tailrace.model.table import TableId

CREATE, ALTER, DROP = "CREATE", "ALTER", "DROP"


@dataclass(frozen=True, slots=True)
class DescribedColumn:
    """A column as schema changes describe it, in its database's terms; `jdbc_type` is one of java.sql.Types."""

    name: str
    jdbc_type: int
    type_name: str
    position: int | str
    _: KW_ONLY
    native_type: int | None = None
    type_expression: str | None = None
    charset: str | None = None
    length: int | None = None
    scale: int | None = None
    optional: bool = True
    auto_incremented: bool = False
    generated: bool = False
    comment: str | None = None
    default: str | None = None
    enum_values: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One statement's effect on one table: CREATE, ALTER or DROP, the statement, and the table after it (none: DROP).

    `position` is its position in the log. `previous` is the table's name before a rename. `renamed` are columns by
    their old and new names, `dropped` removed columns, both found by the columns' identities: a column dropped
    and added again is not renamed. `database` is what its record has as the database's name; None: that of the table.
    """

    kind: str
    statement: str | None
    position: int | str
    key: tuple[str, ...] = ()
    _: KW_ONLY
    columns: tuple[DescribedColumn, ...] = ()
    comment: str | None = None
    previous: TableId | None = None
    renamed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    database: str | None = None

    def to_json(self) -> dict[str, Any]:
        """A JSON form, for the header of a ChangeBatch's IPC bytes."""
        return asdict(self)

    @staticmethod
    def from_json(node: dict[str, Any]) -> SchemaChange:
        """The inverse of `to_json`."""
        previous = node["previous"]
        return SchemaChange(
            kind=node["kind"],
            statement=node["statement"],
            position=node["position"],
            key=tuple(node["key"]),
            columns=tuple(
                DescribedColumn(**{**each, "enum_values": each["enum_values"] and tuple(each["enum_values"])})
                for each in node["columns"]
            ),
            comment=node["comment"],
            previous=None if previous is None else TableId.from_json(previous),
            renamed=tuple((old, new) for old, new in node["renamed"]),
            dropped=tuple(node["dropped"]),
            database=node.get("database"),
        )
