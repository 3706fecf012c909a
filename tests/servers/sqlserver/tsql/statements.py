"""The statements of a batch, as the parser hands them to the executor."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from ..datatypes import SqlType

Name = tuple[str, ...]


@dataclass(eq=False)
class Statement:
    """One statement; `line` is where it begins."""

    line: int = field(default=1, kw_only=True)


@dataclass(eq=False)
class Query(Statement):
    """SELECT that yields rows, or fills a new table by INTO."""

    tree: exp.Expression


@dataclass(eq=False)
class Select(Query):
    """SELECT that sets variables."""


@dataclass(eq=False)
class Values(Statement):
    """What an INSERT inserts, as written: a query."""

    tree: exp.Expression


@dataclass(eq=False)
class Output:
    """An OUTPUT clause."""

    columns: exp.Expression
    into: Name | None = None
    into_columns: list[str] | None = None


@dataclass(eq=False)
class Insert(Statement):
    """INSERT; `source` is None for DEFAULT VALUES."""

    target: Name
    columns: list[str] | None
    source: exp.Expression | Execute | None
    output: Output | None = None
    top: exp.Expression | None = None


@dataclass(eq=False)
class Change(Statement):
    """UPDATE or DELETE: the rows of `target` that `tree`, a query over FROM and WHERE, finds."""

    kind: str
    target: Name
    tree: exp.Select
    assignments: list[tuple[str, exp.Expression]]
    output: Output | None = None
    top: exp.Expression | None = None


@dataclass(eq=False)
class Merge(Statement):
    """MERGE."""

    tree: exp.Merge
    output: Output | None = None


@dataclass(eq=False)
class Declare(Statement):
    """DECLARE of variables: name, type, value."""

    variables: list[tuple[str, SqlType | tuple[str, ...], exp.Expression | None]]


@dataclass(eq=False)
class DeclareTable(Statement):
    """DECLARE of a table variable."""

    name: str
    table: CreateTable


@dataclass(eq=False)
class SetVariable(Statement):
    """SET @name = value."""

    name: str
    value: exp.Expression


@dataclass(eq=False)
class SetOption(Statement):
    """SET of an option, as its words in upper case and the rest."""

    words: list[str]


@dataclass(eq=False)
class Block(Statement):
    """BEGIN ... END."""

    body: list[Statement]


@dataclass(eq=False)
class If(Statement):
    """IF with the statement of each way."""

    condition: exp.Expression
    then: Statement
    otherwise: Statement | None


@dataclass(eq=False)
class While(Statement):
    """WHILE."""

    condition: exp.Expression
    body: Statement


@dataclass(eq=False)
class TryCatch(Statement):
    """BEGIN TRY ... END TRY BEGIN CATCH ... END CATCH."""

    body: list[Statement]
    handler: list[Statement]


@dataclass(eq=False)
class Simple(Statement):
    """A statement of one word with optional expressions: BREAK, RETURN, PRINT, RAISERROR, THROW, WAITFOR."""

    word: str
    arguments: list[exp.Expression]


@dataclass(eq=False)
class Argument:
    """One argument of EXEC."""

    name: str | None
    value: exp.Expression | None
    output: bool = False


@dataclass(eq=False)
class Execute(Statement):
    """EXEC of a procedure."""

    procedure: Name
    arguments: list[Argument]
    returns: str | None = None


@dataclass(eq=False)
class ExecuteText(Statement):
    """EXEC ('text')."""

    text: exp.Expression


@dataclass(eq=False)
class Transaction(Statement):
    """BEGIN, COMMIT, ROLLBACK or SAVE of a transaction."""

    action: str
    name: str | None


@dataclass(eq=False)
class Use(Statement):
    """USE."""

    database: str


# Definitions


@dataclass(eq=False)
class Column:
    """One column of CREATE TABLE."""

    name: str
    type_name: str | None
    nullable: bool | None = None
    identity: tuple[int, int] | None = None
    default: exp.Expression | None = None
    default_name: str | None = None
    computed: exp.Expression | None = None
    persisted: bool = False
    collation: str | None = None
    sparse: bool = False
    rowguid: bool = False


@dataclass(eq=False)
class Constraint:
    """PRIMARY KEY, UNIQUE, FOREIGN KEY, CHECK, or DEFAULT for a column; or an index written inside of a table."""

    kind: str
    name: str | None = None
    columns: list[tuple[str, bool]] = field(default_factory=list)
    clustered: bool | None = None
    check: exp.Expression | None = None
    references: Name = ()
    referenced: list[str] = field(default_factory=list)
    actions: dict[str, str] = field(default_factory=dict)


@dataclass(eq=False)
class CreateTable(Statement):
    """CREATE TABLE."""

    name: Name
    columns: list[Column]
    constraints: list[Constraint]


@dataclass(eq=False)
class AlterTable(Statement):
    """ALTER TABLE: an action with what it adds, changes or drops."""

    name: Name
    action: str
    columns: list[Column] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    names: list[tuple[str, str]] = field(default_factory=list)
    if_exists: bool = False


@dataclass(eq=False)
class CreateIndex(Statement):
    """CREATE INDEX."""

    name: str
    table: Name
    columns: list[tuple[str, bool]]
    included: list[str]
    unique: bool
    clustered: bool
    where: exp.Expression | None = None


@dataclass(eq=False)
class Drop(Statement):
    """DROP of something by name; `table` for an index."""

    kind: str
    names: list[Name]
    if_exists: bool = False
    table: Name = ()


@dataclass(eq=False)
class Truncate(Statement):
    """TRUNCATE TABLE."""

    name: Name


@dataclass(eq=False)
class CreateModule(Statement):
    """CREATE VIEW, FUNCTION, PROCEDURE or TRIGGER: its text is kept."""

    kind: str
    name: Name
    text: str
    replace: bool = False


@dataclass(eq=False)
class CreateSimple(Statement):
    """CREATE or ALTER of databases, schemas, types, logins, users, roles, synonyms: words and options."""

    verb: str
    kind: str
    name: Name
    words: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Permission(Statement):
    """GRANT, DENY or REVOKE."""

    verb: str
    permissions: list[str]
    securable_class: str
    securable: Name
    principals: list[str]
