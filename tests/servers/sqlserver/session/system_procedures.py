"""System procedures other than those of metadata and change data capture."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..catalogue.literals import quote
from ..datatypes import MAX, make
from ..translate.query import OutColumn
from ..tsql.errors import error
from .outcome import Compiled, delivered

if TYPE_CHECKING:
    from .executor import Executor
    from .procedures import Arguments


def rename(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_rename of a table, a column or an index."""
    from .definitions import atomic  # definitions hold this

    old, new = arguments.text("objname") or "", arguments.text("newname") or ""
    kind = (arguments.text("objtype") or "OBJECT").upper()
    parts = tuple(part.strip('[]"') for part in old.split("."))
    session = executor.session
    with atomic(executor):
        if kind in ("COLUMN", "INDEX"):
            table = session.context().table(parts[:-1])
            if kind == "COLUMN":
                _rename_column(executor, table.object_id, parts[-1], new)
            else:
                session.backend.run(
                    f"UPDATE cat.indexes SET name = {quote(new)} WHERE object_id = {table.object_id} AND"
                    f" lower(name) = {quote(parts[-1].lower())}"
                )
        else:
            found = session.context().find_table(parts)
            if found is None:
                raise error(15225, old, session.database_name)
            session.backend.run(
                f"UPDATE cat.objects SET name = {quote(new)}, modify_date = clock_timestamp() WHERE object_id ="
                f" {found.object_id}"
            )
    executor.sink.info(
        15477, 10, "Caution: Changing any part of an object name could break scripts and stored procedures."
    )
    return ()


def _rename_column(executor: Executor, object_id: int, old: str, new: str) -> None:
    backend = executor.session.backend
    captured = backend.scalar(
        "SELECT 1 FROM cat.captured_column WHERE source_object_id = "
        f"{object_id} AND column_id = (SELECT column_id FROM cat.columns WHERE object_id = {object_id} AND"
        f" lower(name) = {quote(old.lower())})"
    )
    if captured is not None:
        raise error(4928, old, "REPLICATED")
    changed = backend.run(
        f"UPDATE cat.columns SET name = {quote(new)} WHERE object_id = {object_id} AND lower(name) ="
        f" {quote(old.lower())}"
    ).count
    if not changed:
        raise error(15248)


def add_property(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_addextendedproperty: comments of tables and columns."""
    session = executor.session
    database = session.current_database().database_id
    kind, major, minor = 0, 0, 0
    if arguments.has("level0name"):
        kind, major = 3, session.reader().schema_id(database, arguments.text("level0name") or "") or 0
    if arguments.has("level1name"):
        table = session.context().table((arguments.text("level0name") or "dbo", arguments.text("level1name") or ""))
        kind, major = 1, table.object_id
        if arguments.has("level2name"):
            column = table.column(arguments.text("level2name") or "")
            minor = column.column_id if column is not None else 0
    name, value = arguments.text("name") or "", arguments.text("value") or ""
    session.backend.run(
        f"INSERT INTO cat.extended_properties VALUES ({database}, {kind}, {major}, {minor}, {quote(name)},"
        f" {quote(value)}) ON CONFLICT DO NOTHING"
    )
    return ()


def add_member(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_addrolemember."""
    return _member(executor, arguments, add=True)


def drop_member(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_droprolemember."""
    return _member(executor, arguments, add=False)


def _member(executor: Executor, arguments: Arguments, *, add: bool) -> Iterable[Compiled]:
    from .principals import change_member  # principals hold definitions

    number = executor.session.current_database().database_id
    change_member(executor, number, arguments.text("rolename") or "", arguments.text("membername") or "", add=add)
    executor.session.definitions_changed()
    return ()


def service_control(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """xp_servicecontrol: starts, stops or asks the Agent, on which the capture job depends."""
    action, service = (arguments.text("action") or "").upper(), (arguments.text("service") or "").upper()
    if "AGENT" not in service:
        raise error(22003, service)
    if action in ("START", "STOP"):
        executor.session.server.capture.set_agent(action == "START")
        return
    state = "Running." if executor.session.server.capture.agent_running else "Stopped."
    listed = [OutColumn("Current Service State", make("nvarchar", MAX))]
    yield Compiled(delivered(f"SELECT {quote(state)}::text AS c1", listed), listed)


def describe_first_result_set(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_describe_first_result_set is not answered: drivers do without."""
    raise error(11529)


def reset_connection(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """sp_reset_connection."""
    executor.session.reset()
    return ()


def accept(executor: Executor, arguments: Arguments) -> Iterable[Compiled]:
    """A procedure without meaning here."""
    return ()


_PROPERTY = ("name", "value", "level0type", "level0name", "level1type", "level1name", "level2type", "level2name")

PROCEDURES = {
    "sp_rename": (("objname", "newname", "objtype"), rename),
    "sp_addextendedproperty": (_PROPERTY, add_property),
    "sp_addrolemember": (("rolename", "membername"), add_member),
    "sp_droprolemember": (("rolename", "membername"), drop_member),
    "xp_servicecontrol": (("action", "service"), service_control),
    "sp_describe_first_result_set": (("tsql", "params", "browse_information_mode"), describe_first_result_set),
    "sp_reset_connection": ((), reset_connection),
    "sp_set_session_context": (("key", "value", "read_only"), accept),
    "sp_updatestats": ((), accept),
}
