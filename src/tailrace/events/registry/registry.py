"""Gets the ids of schemas from a schema registry. Each process asks once for each schema and topic."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol

from tailrace.errors import SinkError
from tailrace.events.avro.differences import change
from tailrace.events.avro.schema import odd_names
from tailrace.events.registry.json_schema import json_changes

# The languages of schemas, as registries call them.
AVRO, JSON, CONNECT = "AVRO", "JSON", "KCONNECT"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A schema for the records of a topic: `node` and its `text` in a `language`; `part` is key or value."""

    topic: str
    part: str
    node: Any
    text: str
    language: str = AVRO

    def difference(self, old: Any) -> str:
        """What the schema has otherwise than an older one, for people; `nothing` where data of both are alike."""
        new = json.loads(self.text)
        if self.language == AVRO:
            return change(old, new)
        if self.language == JSON:
            return ", ".join(json_changes(old, new)) or "nothing"
        return "nothing" if old == new else "other fields or types"


class Registry(Protocol):
    """One converter's registry with its settings."""

    def name(self, wanted: Wanted) -> str:
        """What the schema's subject, or artifact, is called."""

    def id(self, wanted: Wanted) -> int:
        """The id of the schema, which is registered if that is configured. Raises SinkError."""

    def refusal(self, wanted: Wanted) -> SinkError | None:
        """Why the registry would refuse the schema; registers nothing."""

    def about(self) -> str:
        """What the registry says of itself, as a proof that it is reached. Raises SinkError."""


# By what a registry and its settings are, and by subject and text: the ids outlive the tasks of a worker process.
_ids: dict[Hashable, int] = {}
_lock = threading.Lock()


def known_id(settings: Hashable, registry: Callable[[], Registry], wanted: Wanted) -> int:
    """The id of a schema, asked for once in a process."""
    key = (settings, wanted.topic, wanted.text)
    with _lock:
        if key not in _ids:
            _ids[key] = registry().id(wanted)
        return _ids[key]


def forget() -> None:
    """Forget all ids, as a new process has none."""
    with _lock:
        _ids.clear()


def refused(subject: str, rule: str | None, change: str, said: str) -> SinkError:
    """The error for a schema that the registry's rule does not allow."""
    return SinkError(
        f"the schema registry refuses the schema: {said}; the change since the latest version: {change}",
        where=f"subject {subject}, rule {rule or 'unknown'}",
        remedy=f"undo the change of the table, or set another rule for {subject} in the registry for as long as the "
        "schema is registered; the pipeline resumes where it stopped",
    )


def invalid(subject: str, said: str, wanted: Wanted) -> SinkError:
    """The error for a schema that the registry cannot read."""
    odd = odd_names(wanted.node) if wanted.language == AVRO else []
    names = f"; Avro does not allow the name {odd[0]}" if odd else ""
    return SinkError(
        f"the schema registry refuses the schema: {said}{names}",
        where=f"subject {subject}",
        remedy="set schema.name.adjustment.mode=avro, or a topic.prefix of letters, digits and `_`"
        if odd
        else "see the registry's log",
    )


def unregistered(subject: str, setting: str) -> SinkError:
    """The error for a schema that is not registered, where nobody may register it."""
    return SinkError(
        "the schema is not registered, and this pipeline does not register schemas",
        where=f"subject {subject}",
        remedy=f"register it, or set {setting}=true",
    )


def unlike(subject: str, change: str, setting: str) -> SinkError:
    """The error for a latest version that records cannot be written with."""
    return SinkError(
        f"the records do not have the layout of the latest version of the schema: {change}",
        where=f"subject {subject}",
        remedy=f"register a version with the table's columns, or remove {setting}",
    )
