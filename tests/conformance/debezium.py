"""A real Debezium connector on a Source: it runs in the engine of $TAILRACE_REFERENCE, with its offsets in a file."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.pipelines import PREFIX
from tests.conformance.subject import Source, Subject

# What the engine needs beside the properties that it shares with a pipeline.
ENGINE = {
    "postgres": {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
    },
    "mongodb": {"connector.class": "io.debezium.connector.mongodb.MongoDbConnector"},
    "sqlserver": {
        "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
        "driver.encrypt": "false",
        "poll.interval.ms": "100",
    },
    "db2": {
        "connector.class": "io.debezium.connector.db2.Db2Connector",
        "driver.securityMechanism": "3",
        "database.query.timeout.ms": "0",
        "poll.interval.ms": "100",
    },
}
_STOP_SECONDS = 120
# Of a java.util.HashMap of byte arrays, as Java serializes it: all before the entries, and the class of an array.
_HEAD = bytes.fromhex(
    "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f"
)
_HEAD += bytes.fromhex("724900097468726573686f6c6478703f4000000000000c")
_ARRAY, _AGAIN = bytes.fromhex("757200025b42acf317f8060854e00200007870"), bytes.fromhex("7571007e")
_HANDLE = 2

Entry = dict[str, dict[str, Any]]


def program() -> Path:
    """The program that runs a real Debezium; skips without."""
    folder = os.environ.get("TAILRACE_REFERENCE")
    if folder is None:
        pytest.skip("needs a Debezium engine, name its folder in TAILRACE_REFERENCE")
    return Path(folder) / "run.sh"


class Debezium:
    """One connector of the engine over some tables of a source."""

    def __init__(self, subject: Subject, source: Source, folder: Path, tables: Sequence[str], **properties: str):
        self._program, self._folder = program(), folder
        folder.mkdir(parents=True, exist_ok=True)
        self.output, self._stop = folder / "events.jsonl", folder / "stop"
        self._offsets = folder / "offsets"
        listed = ",".join(source.id(table).filtered.replace(".", r"\.") for table in tables)
        self.config = {
            **source.properties("debezium"),
            **ENGINE[subject.connector],
            "name": "shop",
            "topic.prefix": PREFIX,
            subject.package.include_list: listed,
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": str(folder / "history.jsonl"),
            "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
            "offset.storage.file.filename": str(self._offsets),
            "offset.flush.interval.ms": "100",
            "errors.max.retries": "0",
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
            **{name.replace("__", "."): value for name, value in properties.items()},
        }

    @contextmanager
    def running(self, *, until_streaming: bool = True) -> Iterator[subprocess.Popen[str]]:
        """The connector, from when it streams on, for the length of the block."""
        self._stop.unlink(missing_ok=True)
        file = self._folder / "connector.json"
        file.write_text(json.dumps({"name": "shop", "config": self.config}), encoding="utf-8")
        command = [self._program, "--config", file, "--output", self.output, "--stop-file", self._stop]
        with (
            (self._folder / "engine.log").open("ab") as log,
            subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=log, text=True) as process,
        ):
            assert process.stdout is not None
            if until_streaming:
                assert any("STREAMING" in line for line in process.stdout), self.said()
            try:
                yield process
            finally:
                self._stop.touch()
                process.communicate(timeout=_STOP_SECONDS)

    def said(self) -> str:
        """The end of the engine's log."""
        return (self._folder / "engine.log").read_text(encoding="utf-8", errors="replace")[-3000:]

    def events(self) -> list[dict[str, Any]]:
        """The records of the last run: topic, key and value."""
        lines = self.output.read_text(encoding="utf-8").splitlines() if self.output.exists() else []
        return [json.loads(line) for line in lines if line.endswith("}")]

    def offsets(self) -> list[Entry]:
        """The offsets that it has stored, as Kafka Connect shows them."""
        found = list(_arrays(self._offsets.read_bytes()))
        pairs = zip(found[::2], found[1::2], strict=True)
        return [{"partition": json.loads(key)[1], "offset": json.loads(value)} for key, value in pairs]

    def store(self, entries: Sequence[Entry]) -> None:
        """Replace its offsets, as Kafka Connect does."""
        content = bytearray(_HEAD + b"\x77\x08" + struct.pack(">ii", 16, len(entries)))
        has_class = False
        for entry in entries:
            key = json.dumps(["shop", entry["partition"]], separators=(",", ":")).encode()
            for value in (key, json.dumps(entry["offset"], separators=(",", ":")).encode()):
                content += _AGAIN + struct.pack(">H", _HANDLE) if has_class else _ARRAY
                content += struct.pack(">i", len(value)) + value
                has_class = True
        self._offsets.write_bytes(content + b"\x78")


def _arrays(content: bytes) -> Iterator[bytes]:
    """The byte arrays of a serialized map: keys and values in turn."""
    at = content.index(b"\x77\x08", len(_HEAD) - 4) + 10
    while content[at : at + 1] == b"\x75":
        at += len(_ARRAY) if content[at + 1 : at + 2] == b"\x72" else len(_AGAIN) + 2
        (length,) = struct.unpack_from(">i", content, at)
        yield content[at + 4 : at + 4 + length]
        at += 4 + length


def connect(entries: Sequence[Mapping[str, Any]]) -> str:
    """The offsets as Kafka Connect's REST interface prints them."""
    return json.dumps({"offsets": list(entries)})
