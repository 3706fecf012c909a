"""Runs the reference engine on a scenario and returns the events that it emits.

The engine is the program `run.sh` of the folder that TAILRACE_REFERENCE names. It takes `--config FILE --output FILE
--stop-file FILE`, prints `STREAMING` once the connector streams, writes an event a line, and ends when the stop file
exists. A line is JSON and begins with the topic. Headers are JSON, or strings if `header.converter.class` makes others.
"""

from __future__ import annotations

import base64
import json
import re
import string
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.golden.avro_records import AvroReader, uses_registry
from tests.golden.compare import Event, load
from tests.golden.databases.database import GoldenServer
from tests.golden.scenario import Scenario
from tests.golden.script import Directive

STARTUP_SECONDS = 60
STOP_SECONDS = 60
SETTLE_SECONDS = 1.5
MARKER_SECONDS = 120
_DATUMS = re.compile(rb'"bytes":"([^"]*)"')
_TOPIC = re.compile(r'^\{"topic": ?"([^"]*)"', re.MULTILINE)


class EngineError(Exception):
    """The engine did not start, or ended by itself; the message has the end of its log."""


class Engine:
    """The reference engine as a child process; a restart resumes from its stored offsets."""

    def __init__(self, program: Path, properties: Mapping[str, str], work: Path, scenario: Scenario) -> None:
        self._program, self._work, self._endless = program, work, scenario.endless
        self._avro = AvroReader(properties) if uses_registry(properties) else None
        self._marker: str | None = scenario.settings.get("marker")
        self._waits = 0
        self._parts: list[Path] = []
        self._process: subprocess.Popen[bytes] | None = None
        own = {
            "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
            "offset.storage.file.filename": str(work / "offsets.dat"),
            "offset.flush.interval.ms": "0",
            "errors.max.retries": "0",  # what cannot be recorded fails at once
        }
        document = {"name": "compare", "config": {**own, **properties}}
        (work / "engine.json").write_text(json.dumps(document), encoding="utf-8")

    def start(self) -> None:
        """Start, and return once the connector streams. Raises EngineError."""
        self._parts.append(self._work / f"part-{len(self._parts) + 1}.jsonl")
        messages = self._work / f"messages-{len(self._parts)}.txt"
        self._stop_file.unlink(missing_ok=True)
        places = ("--config", self._work / "engine.json", "--output", self._parts[-1], "--stop-file", self._stop_file)
        with self._log.open("ab") as log, messages.open("wb") as out:
            self._process = subprocess.Popen([self._program, *map(str, places)], stdout=out, stderr=log)
        deadline = time.monotonic() + STARTUP_SECONDS
        while "STREAMING" not in messages.read_text(encoding="utf-8"):
            self._check()
            if time.monotonic() > deadline:
                raise EngineError(f"the engine does not stream after {STARTUP_SECONDS} s{self._tail()}")
            time.sleep(0.05)
        # It may say so a moment before it listens, and before it adds tables to a publication that was there.
        if self._marker is None or len(self._parts) > 1:
            time.sleep(SETTLE_SECONDS)

    def wait(self, seconds: float) -> None:
        """Return once the marker has come, if there is one, and no event but heartbeats for so long.

        Raises EngineError.
        """
        self._waits += 1
        deadline = time.monotonic() + MARKER_SECONDS
        count, since = -1, time.monotonic()
        while time.monotonic() - since < seconds or not self._is_marked():
            self._check()
            if time.monotonic() > deadline:
                raise EngineError(f"the marker {self._marker}{self._waits} has not come in {MARKER_SECONDS} s")
            if (now := self._count()) != count:
                count, since = now, time.monotonic()
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop; the offsets stay. Raises EngineError if it failed: its recording is not whole."""
        if self._process is None:
            return
        process, self._process = self._process, None
        self._stop_file.touch()
        try:
            code = process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS)
        else:
            if code:
                raise EngineError(f"the engine has ended with {code}{self._tail()}")

    def events(self) -> list[Event]:
        """All events so far, in order of arrival; `run` numbers the starts from 0."""
        parts = [(run, part) for run, part in enumerate(self._parts) if part.exists()]
        return [{**self._read(event), "run": run} for run, part in parts for event in load(part)]

    def _read(self, event: Event) -> Event:
        """An event of Avro as the program writes it: keys and values as bytes in base64, the converters' headers."""
        if self._avro is None:
            return event
        headers = {name: base64.b64decode(text) for name, text in event["added"].items()}
        if any("error" in (event[part] or ()) for part in ("key", "value")):
            raise EngineError(f"a converter has failed: {event['key']} {event['value']}")
        return {**event, **self._avro.event({part: _octets(event[part]) for part in ("key", "value")}, headers)}

    @property
    def _log(self) -> Path:
        return self._work / "engine.log"

    @property
    def _stop_file(self) -> Path:
        return self._work / "stop"

    def _count(self) -> int:
        part = self._parts[-1]
        topics = Counter(_TOPIC.findall(part.read_text(encoding="utf-8"))) if part.exists() else Counter()
        return sum(count for topic, count in topics.items() if not any(each.search(topic) for each in self._endless))

    def _is_marked(self) -> bool:
        if self._marker is None:
            return True
        part = self._parts[-1]
        return part.exists() and f"{self._marker}{self._waits}".encode() in self._said(part.read_bytes())

    def _said(self, lines: bytes) -> bytes:
        """What was written, of Avro without base64."""
        return lines if self._avro is None else b"\n".join(map(base64.b64decode, _DATUMS.findall(lines)))

    def _check(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            raise EngineError(f"the engine has ended{self._tail()}")

    def _tail(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        causes = [line.strip() for line in lines if "Caused by" in line or "Exception" in line]
        return f": {causes[-1]}" if causes else ", see its engine.log"


def _octets(document: Any) -> bytes | None:
    """A key or a value as the program writes it: bytes, or JSON where the converter makes that."""
    if document is None or set(document) != {"bytes"}:
        return None if document is None else json.dumps(document).encode()
    return base64.b64decode(document["bytes"])


def record(
    scenario: Scenario, server: GoldenServer, program: Path, engine_settings: Mapping[str, str], work: Path
) -> list[Event]:
    """The engine's events of the scenario's workload.

    `${work}` in engine_settings is the engine's folder. Raises SkippedError, EngineError, and what the server raises.
    """
    server.check(scenario.folder, scenario.settings)
    server.prepare(scenario.folder)
    own = {name: string.Template(text).safe_substitute({"work": work}) for name, text in engine_settings.items()}
    given = {**own, **server.settings, **scenario.filled(server)}
    if "header.converter" in given:  # an engine outside Kafka Connect has another name for it
        given["header.converter.class"] = given["header.converter"]
    engine = Engine(program, given, work, scenario)
    settle = max(0 if scenario.settings.get("marker") else SETTLE_SECONDS, scenario.settle_seconds)
    try:
        engine.start()
        for step in server.workload(scenario.folder):
            _direct(engine, server, step, settle)
        _direct(engine, server, Directive("wait"), settle)
    finally:
        engine.stop()
        server.clear()
    return engine.events()


def _direct(engine: Engine, server: GoldenServer, step: Directive, settle: float) -> None:
    if step.name == "sleep":
        time.sleep(float(step.argument))
    elif step.name == "start":
        engine.start()
    elif step.name in ("wait", "stop"):
        server.log_end()  # change tables are filled up to here
        engine.wait(settle)
        if step.name == "stop":
            if not engine.events():
                raise EngineError("it was stopped before its first event, and stores no position before one")
            engine.stop()
    else:
        raise ValueError(f"unknown directive @{step.name}")
