"""Tells whether a pipeline's sink can be reached: `run` watches it, `status` asks once."""

from __future__ import annotations

import logging
import threading
import time
from typing import Protocol

from tailrace.connectors.finding import SINK, Finding
from tailrace.errors import SinkError
from tailrace.pipeline.definition import Definition, KafkaTarget, ReplicaTarget
from tailrace.pipeline.sink_check import folder
from tailrace.sinks.kafka.client import REACH, Settings
from tailrace.sinks.kafka.health import KafkaProbe

log = logging.getLogger(__name__)

# A sink that is away is reported within 5 seconds: the pause, and an answer that does not come.
_PAUSE_SECONDS, _ANSWER_SECONDS = 1.0, 2.0
# A command connects first.
_COMMAND_SECONDS = 4.0
_STORE = "check the storage, the network, and `storage_options`"
_NAMED = "check what `catalog` or `url` names, the network, and the properties that are given for it"
_WAITS = "; the pipeline waits for it, and goes on by itself; remedy: "


class SinkProbe(Protocol):
    """Asks a sink whether it is there."""

    def look(self, seconds: float) -> tuple[str, bool] | None:
        """Why the sink did not answer within so many seconds, None if it did; and whether that is certain.

        It is not if there was no answer in time: a sink may be slow for a moment.
        """


class _Folder:
    """Implements SinkProbe for a folder of this machine."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition

    def look(self, seconds: float) -> tuple[str, bool] | None:
        problem_of_folder = next(folder(self._definition), None)
        return None if problem_of_folder is None else (problem_of_folder.what, True)


def probe(definition: Definition) -> tuple[SinkProbe, str] | None:
    """What asks the sink, and how to help it; None for one that has no place, or that Spark alone can reach."""
    target = definition.sink.target
    if isinstance(target, KafkaTarget):
        properties = {**target.properties, "bootstrap.servers": target.bootstrap_servers}
        return KafkaProbe(Settings(properties)), REACH
    path = definition.sink.path
    if isinstance(target, ReplicaTarget) and "://" in target.root:
        from tailrace.sinks.replica.store_probe import StoreProbe  # loads deltalake, which other sinks do without

        return StoreProbe(target.root, target.options), _STORE if target.format == "delta" else _NAMED
    return None if path is None or "://" in path else (_Folder(definition), "see that it is mounted and may be written")


def problem(definition: Definition) -> Finding | None:
    """Why the sink cannot be reached at this moment, for `status`."""
    try:
        unreached = probe(definition)
    except SinkError as error:
        return Finding(SINK, False, error.what, error.remedy)
    if unreached is None:
        return None
    asks, remedy = unreached
    said: list[tuple[str, bool] | None] = []
    asker = threading.Thread(target=lambda: said.append(asks.look(_COMMAND_SECONDS)), name="sink", daemon=True)
    asker.start()
    asker.join(_COMMAND_SECONDS + 1)
    if not said:
        return Finding(SINK, False, f"the sink does not answer within {_COMMAND_SECONDS:.0f} s", remedy)
    return None if said[0] is None else Finding(SINK, False, said[0][0], remedy)


def sink_finding(said: str | None) -> Finding | None:
    """The finding of what a SinkWatch has said; None where the sink answers."""
    if said is None:
        return None
    what, _, remedy = said.partition(_WAITS)
    return Finding(SINK, False, what, remedy)


class SinkWatch:
    """Asks the sink of a run every second, in a thread; `None`: there is nothing to ask."""

    def __init__(self, definition: Definition | None) -> None:
        self._ended = threading.Event()
        self._said: str | None = None
        self._asked: float | None = None
        self._remedy = ""
        if definition is not None:
            threading.Thread(target=self._watch, args=(definition,), name="sink", daemon=True).start()

    @property
    def problem(self) -> str | None:
        """Why the sink cannot be reached now, with the remedy; None where it answers."""
        asked, said = self._asked, self._said
        if asked is not None and time.monotonic() - asked > 2 * _ANSWER_SECONDS:
            said = "the sink does not answer"
        return None if said is None else f"{said}{_WAITS}{self._remedy}"

    def stop(self) -> None:
        """End the questions."""
        self._ended.set()

    def _watch(self, definition: Definition) -> None:
        try:
            unreached = probe(definition)
        except SinkError as error:
            log.info("the sink is not watched: %s", error)
            return
        if unreached is None:
            return
        asks, self._remedy = unreached
        was_late = False
        while not self._ended.wait(_PAUSE_SECONDS):
            self._asked = time.monotonic()
            answer = asks.look(_ANSWER_SECONDS)
            self._asked = None
            is_away = answer is not None and (answer[1] or was_late)
            was_late = answer is not None
            self._said = answer[0] if answer is not None and is_away else None
