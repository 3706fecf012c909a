"""Parses CREATE, ALTER, DROP, TRUNCATE, GRANT: what defines things."""

from __future__ import annotations

from collections.abc import Callable

from . import statements as s
from .cursor import STARTS, Cursor
from .errors import syntax

_MODULES = ("VIEW", "FUNCTION", "PROCEDURE", "PROC", "TRIGGER")
_CONSTRAINTS = ("CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "INDEX")


def create(cursor: Cursor) -> s.Statement:
    """CREATE of anything."""
    cursor.expect("CREATE")
    replace = cursor.accept("OR", "ALTER")
    if cursor.accept("TABLE"):
        name = cursor.name()
        columns, constraints = table_elements(cursor)
        cursor.until(lambda word: word in STARTS)  # ON filegroup, WITH options
        return s.CreateTable(name, columns, constraints)
    if cursor.word() in ("UNIQUE", "CLUSTERED", "NONCLUSTERED", "INDEX", "COLUMNSTORE"):
        return _index(cursor)
    if cursor.word() in _MODULES:
        return _module(cursor, replace)
    return _simple(cursor, "CREATE")


def alter(cursor: Cursor) -> s.Statement:
    """ALTER of anything."""
    cursor.expect("ALTER")
    if cursor.accept("TABLE"):
        return _alter_table(cursor)
    if cursor.word() in _MODULES:
        return _module(cursor, True)
    return _simple(cursor, "ALTER")


def drop(cursor: Cursor) -> s.Statement:
    """DROP of anything."""
    cursor.expect("DROP")
    kind = cursor.next().text.upper()
    kind = "PROCEDURE" if kind == "PROC" else kind
    if_exists = cursor.accept("IF", "EXISTS")
    names = [cursor.name()]
    while cursor.accept(","):
        names.append(cursor.name())
    table = cursor.name() if kind == "INDEX" and cursor.accept("ON") else ()
    cursor.until(lambda word: word in STARTS)
    return s.Drop(kind, names, if_exists, table)


def truncate(cursor: Cursor) -> s.Statement:
    """TRUNCATE TABLE."""
    cursor.expect("TRUNCATE", "TABLE")
    return s.Truncate(cursor.name())


def permission(cursor: Cursor) -> s.Statement:
    """GRANT, DENY and REVOKE."""
    verb = cursor.next().text.upper()
    tokens = cursor.until(lambda word: word in ("ON", "TO", "FROM"))
    permissions = [part.strip().upper() for part in " ".join(token.text for token in tokens).split(",")]
    kind, securable = "", ()
    if cursor.accept("ON"):
        if cursor.word(1) == "::":
            kind = cursor.next().text.upper()
            cursor.next()
        elif cursor.word(1) == ":" and cursor.word(2) == ":":
            kind = cursor.next().text.upper()
            cursor.next()
            cursor.next()
        securable = cursor.name()
        if cursor.word() == "(":
            cursor.parenthesis()
    cursor.next()
    principals = [cursor.identifier()]
    while cursor.accept(","):
        principals.append(cursor.identifier())
    cursor.until(lambda word: word in STARTS)
    return s.Permission(verb, permissions, kind, securable, principals)


DEFINITIONS: dict[str, Callable[[Cursor], s.Statement]] = {
    "CREATE": create,
    "ALTER": alter,
    "DROP": drop,
    "TRUNCATE": truncate,
    **dict.fromkeys(("GRANT", "DENY", "REVOKE"), permission),
}


def table_elements(cursor: Cursor) -> tuple[list[s.Column], list[s.Constraint]]:
    """The columns and constraints in the parentheses of CREATE TABLE."""
    cursor.expect("(")
    columns: list[s.Column] = []
    constraints: list[s.Constraint] = []
    while True:
        if cursor.word() in _CONSTRAINTS:
            constraints.append(_constraint(cursor))
        elif cursor.word() == "PERIOD":
            cursor.until(lambda word: word == ",")
        else:
            column, own = _column(cursor)
            columns.append(column)
            constraints += own
        if cursor.accept(","):
            if cursor.accept(")"):
                return columns, constraints
            continue
        cursor.expect(")")
        return columns, constraints


def _column(cursor: Cursor) -> tuple[s.Column, list[s.Constraint]]:
    """One column with the constraints written at it."""
    name = cursor.identifier()
    if cursor.accept("AS"):
        column = s.Column(name, None, computed=cursor.expression(",", "PERSISTED", "CONSTRAINT", "PRIMARY", "UNIQUE"))
    elif name.lower() in ("timestamp", "rowversion") and cursor.word() in (",", ")"):
        column = s.Column("timestamp", "timestamp")
    else:
        column = s.Column(name, cursor.type_text())
    constraints = []
    while cursor.word() not in (",", ")", ";", "") and not (cursor.word() in STARTS and cursor.word() != "SET"):
        constraints += _column_option(cursor, column)
    return column, constraints


def _column_option(cursor: Cursor, column: s.Column) -> list[s.Constraint]:
    """One thing said of a column; a constraint if it is one."""
    name = cursor.identifier() if cursor.accept("CONSTRAINT") else None
    if cursor.accept("NOT", "NULL"):
        column.nullable = False
    elif cursor.accept("NULL"):
        column.nullable = True
    elif cursor.accept("IDENTITY"):
        numbers = (
            [int(token.text) for token in cursor.parenthesis() if token.text.isdigit()]
            if cursor.word() == "("
            else [1, 1]
        )
        column.identity = (numbers[0], numbers[1])
    elif cursor.accept("DEFAULT"):
        column.default, column.default_name = _default(cursor), name
    elif cursor.accept("COLLATE"):
        column.collation = cursor.identifier()
    elif cursor.accept("PERSISTED"):
        column.persisted = True
    elif cursor.accept("SPARSE"):
        column.sparse = True
    elif cursor.accept("ROWGUIDCOL"):
        column.rowguid = True
    elif cursor.accept("NOT", "FOR", "REPLICATION") or cursor.accept("FILESTREAM"):
        pass
    elif cursor.word() in ("PRIMARY", "UNIQUE", "FOREIGN", "REFERENCES", "CHECK"):
        constraint = _constraint(cursor, name)
        constraint.columns = constraint.columns or [(column.name, False)]
        return [constraint]
    elif cursor.word() in ("WITH", "ON", "GENERATED", "MASKED", "ENCRYPTED"):
        cursor.until(lambda word: word in (",", *_CONSTRAINTS, "NOT", "NULL"))
    else:
        raise syntax(cursor.next().text)
    return []


def _default(cursor: Cursor) -> object:
    """The value of DEFAULT, which ends where the next option begins."""
    ends = (
        ",",
        "NOT",
        "NULL",
        "CONSTRAINT",
        "FOR",
        "WITH",
        "PRIMARY",
        "UNIQUE",
        "COLLATE",
        "CHECK",
        "IDENTITY",
        "REFERENCES",
    )
    begin = cursor.position
    if cursor.word() in ("NULL", "NOT"):
        cursor.next()
    tokens = cursor.until(lambda word: word in ends or word in STARTS)
    return cursor.parse(cursor.tokens[begin : cursor.position] if tokens or cursor.position > begin else [])


def _constraint(cursor: Cursor, name: str | None = None) -> s.Constraint:
    """A constraint of a table or a column."""
    if cursor.accept("CONSTRAINT"):
        name = cursor.identifier()
    kind = cursor.next().text.upper()
    if kind in ("PRIMARY", "FOREIGN"):
        cursor.expect("KEY")
    constraint = s.Constraint(kind, name)
    if kind == "CHECK":
        cursor.accept("NOT", "FOR", "REPLICATION")
        constraint.check = cursor.parse(cursor.parenthesis())
        return constraint
    if kind == "DEFAULT":
        constraint.check = _default(cursor)  # type: ignore[assignment]
        cursor.expect("FOR")
        constraint.columns = [(cursor.identifier(), False)]
        return constraint
    if kind == "INDEX":
        constraint.name = cursor.identifier()
        kind = constraint.kind = "UNIQUE INDEX" if cursor.accept("UNIQUE") else "INDEX"
    clustered = cursor.accept_any("CLUSTERED", "NONCLUSTERED")
    constraint.clustered = None if not clustered else clustered == "CLUSTERED"
    if cursor.word() == "(":
        constraint.columns = _index_columns(cursor)
    if kind == "REFERENCES" or cursor.accept("REFERENCES"):
        _references(cursor, constraint)
    elif cursor.word() in ("WITH", "ON"):
        _storage_options(cursor)
    return constraint


def _references(cursor: Cursor, constraint: s.Constraint) -> None:
    constraint.kind = "FOREIGN"
    constraint.references = cursor.name()
    constraint.referenced = cursor.names() if cursor.word() == "(" else []
    while cursor.accept("ON"):
        event = cursor.next().text.upper()
        action = cursor.next().text.upper()
        if action in ("NO", "SET"):
            action += " " + cursor.next().text.upper()
        constraint.actions[event] = action
    cursor.accept("NOT", "FOR", "REPLICATION")


def _storage_options(cursor: Cursor) -> None:
    """Skip WITH (...) and ON filegroup."""
    while cursor.word() in ("WITH", "ON"):
        if cursor.accept("WITH"):
            cursor.parenthesis() if cursor.word() == "(" else cursor.until(
                lambda word: word in (",", "ON") or word in STARTS
            )
        else:
            cursor.next()
            cursor.name()


def _index_columns(cursor: Cursor) -> list[tuple[str, bool]]:
    """The key columns of an index; True for descending ones."""
    cursor.expect("(")
    found = []
    while True:
        name = cursor.identifier()
        found.append((name, cursor.accept_any("ASC", "DESC") == "DESC"))
        if not cursor.accept(","):
            cursor.expect(")")
            return found


def _index(cursor: Cursor) -> s.Statement:
    unique = cursor.accept("UNIQUE")
    clustered = cursor.accept_any("CLUSTERED", "NONCLUSTERED") == "CLUSTERED"
    cursor.accept("COLUMNSTORE")
    cursor.expect("INDEX")
    name = cursor.identifier()
    cursor.expect("ON")
    table = cursor.name()
    columns = _index_columns(cursor) if cursor.word() == "(" else []
    included = cursor.names() if cursor.accept("INCLUDE") else []
    where = cursor.expression("WITH", "ON") if cursor.accept("WHERE") else None
    _storage_options(cursor)
    return s.CreateIndex(name, table, columns, included, unique, clustered, where)


def _alter_table(cursor: Cursor) -> s.Statement:
    name = cursor.name()
    if cursor.accept("WITH"):
        cursor.next()  # CHECK, NOCHECK
    if cursor.accept("ALTER", "COLUMN"):
        column, _ = _column(cursor)
        return s.AlterTable(name, "ALTER", [column])
    if cursor.accept("DROP"):
        return _alter_drop(cursor, name)
    if cursor.accept("ADD"):
        columns: list[s.Column] = []
        constraints: list[s.Constraint] = []
        while True:
            if cursor.word() in (*_CONSTRAINTS, "DEFAULT"):
                constraints.append(_constraint(cursor))
            else:
                column, own = _column(cursor)
                columns.append(column)
                constraints += own
            if not cursor.accept(","):
                return s.AlterTable(name, "ADD", columns, constraints)
    words = [token.text.upper() for token in cursor.until(lambda word: word in STARTS and word != "SET")]
    return s.AlterTable(name, "OTHER", names=[("", word) for word in words])


def _alter_drop(cursor: Cursor, name: s.Name) -> s.Statement:
    names: list[tuple[str, str]] = []
    kind = "CONSTRAINT"
    if_exists = False
    while True:
        kind = cursor.accept_any("COLUMN", "CONSTRAINT") or kind
        if_exists = cursor.accept("IF", "EXISTS") or if_exists
        names.append((kind, cursor.identifier()))
        if not cursor.accept(","):
            return s.AlterTable(name, "DROP", names=names, if_exists=if_exists)


def _module(cursor: Cursor, replace: bool) -> s.Statement:
    """A module takes the rest of the batch; its text begins with CREATE."""
    kind = cursor.next().text.upper()
    name = cursor.name()
    text = cursor.rest()
    cursor.position = len(cursor.tokens)
    return s.CreateModule("PROCEDURE" if kind == "PROC" else kind, name, text, replace)


def _simple(cursor: Cursor, verb: str) -> s.Statement:
    """Databases, schemas, types, principals: a kind, a name, and words."""
    kind = cursor.next().text.upper()
    if kind == "SERVER":
        kind += " " + cursor.next().text.upper()
    if kind == "SCHEMA" and cursor.accept("AUTHORIZATION"):
        name: s.Name = (cursor.identifier(),)
    else:
        name = cursor.name()
    # ALTER DATABASE ... SET ... WITH ROLLBACK IMMEDIATE
    tokens = cursor.until(lambda word: word in STARTS and word not in ("SET", "ROLLBACK"))
    return s.CreateSimple(verb, kind, name, [token.text for token in tokens])
