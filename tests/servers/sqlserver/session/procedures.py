"""EXEC: procedures of the system and those that users have made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..cdc import procedures as capture_procedures
from ..datatypes import INT, MAX, make
from ..translate.modules import parameters
from ..tsql import statements as s
from ..tsql.cursor import Cursor
from ..tsql.dialect import tokenize
from ..tsql.errors import error
from ..tsql.parser import parse as parse_batch
from . import control, metadata, system_procedures
from .outcome import Compiled
from .session import Variable

if TYPE_CHECKING:
    from .executor import Executor

Handler = Callable[["Executor", "Arguments"], Iterable[Compiled]]

SYSTEM: dict[str, tuple[tuple[str, ...], Handler]] = {
    **metadata.PROCEDURES,
    **system_procedures.PROCEDURES,
    **capture_procedures.PROCEDURES,
}


@dataclass
class Given:
    """One argument of a call; `into` is the variable that an OUTPUT argument goes back to."""

    name: str | None
    variable: Variable
    output: bool = False
    into: str | None = None


class Arguments:
    """The arguments of a system procedure by name."""

    def __init__(self, procedure: str, names: tuple[str, ...], given: list[Given]) -> None:
        self._values: dict[str, Variable] = {}
        for place, argument in enumerate(given):
            if argument.name is None and place >= len(names):
                raise error(8144, procedure)
            name = (argument.name or "@" + names[place]).lstrip("@").lower()
            if name not in names:
                raise error(8145, name, procedure)
            self._values[name] = argument.variable

    def has(self, name: str) -> bool:
        """Whether an argument is given and not null."""
        return name in self._values and self._values[name].value is not None

    def text(self, name: str, default: str | None = None) -> str | None:
        """An argument's text; the default where it is missing or null."""
        return self._values[name].value if self.has(name) else default

    def number(self, name: str, default: int) -> int:
        """An argument's number; the default where it is missing or null."""
        value = self.text(name)
        return default if value is None else int(value)

    def variable(self, name: str) -> Variable | None:
        """An argument with its type."""
        return self._values.get(name)


def run_procedure(executor: Executor, statement: s.Execute, *, collect: bool = False) -> list[Compiled]:
    """EXEC; with `collect` its queries are returned and not run."""
    given = [_evaluated(executor, argument) for argument in statement.arguments]
    collected, status = call(executor, statement.procedure, given, collect=collect)
    scope = executor.session.scopes[-1]
    for argument in given:
        if argument.into is not None and argument.into in scope:
            scope[argument.into].value = argument.variable.value
    if statement.returns is not None:
        scope[statement.returns.lower()].value = str(status)
    return collected


def _evaluated(executor: Executor, argument: s.Argument) -> Given:
    if argument.value is None:
        return Given(argument.name, Variable(INT))
    variable = executor.value(argument.value)
    into = "@" + argument.value.name.lower() if argument.output else None
    return Given(argument.name, variable, argument.output, into)


def call(executor: Executor, name: s.Name, given: list[Given], *, collect: bool = False) -> tuple[list[Compiled], int]:
    """Call a procedure; what it returns, and its queries where they are collected."""
    session = executor.session
    plain = name[-1].lower()
    database = name[-3] if len(name) > 2 else ""
    before = session.database_name
    if database and plain.startswith(("sp_", "xp_")):
        session.context().database_named(database)
        session.use(database)
    try:
        if plain == "sp_executesql":
            executor.sink.enter_procedure()
            execute_sql(executor, given)
            executor.sink.leave_procedure(0)
            return [], 0
        if plain in SYSTEM and (len(name) < 2 or name[-2].lower() in ("", "sys", "dbo")):
            return _system(executor, plain, given, collect), 0
        return [], _user_made(executor, name, given)
    finally:
        if database and session.database_name != before and plain.startswith(("sp_", "xp_")):
            session.use(before)


def _system(executor: Executor, name: str, given: list[Given], collect: bool) -> list[Compiled]:
    names, handler = SYSTEM[name]
    arguments = Arguments(name, names, given)
    if collect:
        return list(handler(executor, arguments))
    executor.sink.enter_procedure()
    for compiled in handler(executor, arguments):
        executor.send(compiled)
    executor.sink.leave_procedure(0)
    return []


def execute_sql(executor: Executor, given: list[Given]) -> None:
    """sp_executesql: a text with parameters."""
    text = given[0].variable.value or ""
    declared = declarations(executor, given[1].variable.value or "") if len(given) > 1 else []
    scope: dict[str, Variable] = {}
    values = given[2:]
    for place, (name, declared_type, _) in enumerate(declared):
        found = next((value for value in values if value.name and value.name.lower() == name.lower()), None)
        if found is None and place < len(values) and not values[place].name:
            found = values[place]
        kind = executor.session.context().type(declared_type)
        scope[name.lower()] = _converted(executor, found.variable if found is not None else Variable(kind), kind)
    run_scope(executor, parse_batch(text), scope)
    for place, (name, _, _) in enumerate(declared):
        found = next((value for value in values if value.name and value.name.lower() == name.lower()), None)
        found = found or (values[place] if place < len(values) and not values[place].name else None)
        if found is not None and found.output:
            found.variable.value = scope[name.lower()].value
            found.variable.kind = scope[name.lower()].kind


def run_scope(executor: Executor, statements: tuple[s.Statement, ...], scope: dict[str, Variable]) -> int:
    """Run statements with variables of their own; the status that RETURN gives."""
    session = executor.session
    if len(session.scopes) > 32:
        raise error(217)
    session.scopes.append(scope)
    tables = set(session.temporary)
    no_count = session.options.no_count
    try:
        executor.run_all(statements)
    except control.Return as returned:
        return returned.status
    finally:
        session.scopes.pop()
        session.options.no_count = no_count
        for name in [name for name in session.temporary if name not in tables]:
            session.drop_temporary(name)
    return 0


def _converted(executor: Executor, variable: Variable, kind: object) -> Variable:
    """A value as the type of the parameter that takes it."""
    from ..catalogue.literals import typed  # needed here only
    from ..translate.bound import Bound
    from ..translate.convert import convert

    if variable.value is None or variable.kind == kind or _stores_alike(variable.kind, kind):
        return Variable(kind, variable.value)  # type: ignore[arg-type]
    bound = convert(Bound(typed(variable.value, variable.kind.storage), variable.kind), kind)  # type: ignore[arg-type]
    return Variable(kind, executor.session.backend.scalar(f"SELECT ({bound.sql})::text"))  # type: ignore[arg-type]


def _stores_alike(have: object, want: object) -> bool:
    """Whether a value of one type can be taken as the other without a conversion."""
    same = have.family == want.family and have.family in ("integer", "binary")  # type: ignore[attr-defined]
    same = same and have.name != "binary" and want.name != "binary"  # type: ignore[attr-defined]
    wide = have.name == want.name == "nvarchar" and want.length == MAX  # type: ignore[attr-defined]
    return wide or (same and want.kind.size >= have.kind.size)  # type: ignore[attr-defined]


def declarations(executor: Executor, text: str) -> list[tuple[str, str, bool]]:
    """The parameters that sp_executesql declares in a text."""
    if not text.strip():
        return []
    cursor = Cursor(tokenize(text), text)
    return [(name, declared, output) for name, declared, _, output in parameters(cursor)]


def _user_made(executor: Executor, name: s.Name, given: list[Given]) -> int:
    session = executor.session
    module = session.context().find_module(name, ("P",))
    if module is None:
        raise error(2812, ".".join(name))
    text = module.definition or ""
    cursor = Cursor(tokenize(text), text)
    declared = parameters(cursor)
    cursor.until(lambda word: word == "AS")
    cursor.expect("AS")
    scope: dict[str, Variable] = {}
    outputs: list[tuple[str, Given]] = []
    for place, (parameter, declared_type, default, _) in enumerate(declared):
        found = next((value for value in given if value.name and value.name.lower() == parameter.lower()), None)
        if found is None and place < len(given) and not given[place].name:
            found = given[place]
        kind = session.context().type(declared_type)
        if found is None and default is None:
            raise error(201, module.name, parameter)
        value = found.variable if found is not None else executor.value(default, kind)  # type: ignore[arg-type]
        scope[parameter.lower()] = _converted(executor, value, kind)
        if found is not None and found.output:
            outputs.append((parameter.lower(), found))
    before = session.database_name
    executor.sink.enter_procedure()
    session.use(module.database)
    try:
        status = run_scope(executor, parse_batch(cursor.rest()), scope)
    finally:
        session.use(before)
    executor.sink.leave_procedure(status)
    for parameter, argument in outputs:
        argument.variable = scope[parameter]
    return status


def run_prepared(executor: Executor, text: str, declared: str, values: list[Given]) -> None:
    """sp_execute and sp_prepexec: a prepared text with values."""
    nvarchar = make("nvarchar", MAX)
    execute_sql(executor, [Given(None, Variable(nvarchar, text)), Given(None, Variable(nvarchar, declared)), *values])
