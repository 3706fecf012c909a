"""Tables of a replica that are set aside: which they are, and the request to read them again."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.errors import ConfigError
from tailrace.pipeline.definition import Definition
from tailrace.pipeline.signaling import Sent, send
from tailrace.sinks.replica.aside import SetAside, tables_set_aside
from tailrace.snapshot.signals import BLOCKING, EXECUTE


def set_aside(definition: Definition) -> tuple[SetAside, ...]:
    """The tables that are set aside; none for another sink than a replica. Raises SinkError."""
    replica = definition.sink.replica
    return () if replica is None else tables_set_aside(replica.root, replica.options, replica.names)


def retry(definition: Definition, names: Sequence[str]) -> Sent | None:
    """Ask for a blocking snapshot of the named tables (none: of all) that are set aside; None if there are none.

    Its first rows end that a table is set aside, if its replica takes them. Raises ConfigError for other tables.
    """
    tables = [each.name for each in set_aside(definition)]
    unknown = [name for name in names if name not in tables]
    if unknown:
        shown = ", ".join(tables) or "none is"
        raise ConfigError("is not set aside", where=", ".join(unknown), remedy=f"these tables are: {shown}")
    chosen = list(names) or tables
    return send(definition, EXECUTE, {"data-collections": chosen, "type": BLOCKING}) if chosen else None
