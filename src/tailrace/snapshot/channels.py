"""Signal channels other than the signal table: files of a folder, `signal.file`, a Kafka topic.

None is lost or carried out twice at a restart: what is read stands in the offset of the batch that carries it out, and
a file goes, or the topic's consumer group moves on, when a later batch begins, which is when that one is committed.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from tailrace.config import Config
from tailrace.config.options.snapshot import (
    SIGNAL_ENABLED_CHANNELS,
    SIGNAL_FILE,
    SIGNAL_FOLDER,
    SIGNAL_POLL_INTERVAL_MS,
)
from tailrace.connectors.locations import located
from tailrace.connectors.signal import Signal
from tailrace.errors import ConfigError
from tailrace.snapshot.signals import parsed
from tailrace.snapshot.topic import SignalTopic

log = logging.getLogger(__name__)

FILE, KAFKA = "file", "kafka"
_ENDING = ".json"
# The most files of one poll: the offset has their names until the batch is committed.
MOST_FILES = 100
# How long a folder in a store is left alone that could not be read.
_AWAY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Arrived:
    """New signals in their order, the names of the files now read, and where the topic is read up to."""

    signals: tuple[Signal, ...]
    files: tuple[str, ...]
    topic: int | None


class Channels:
    """The channels of one pipeline, polled at once and then every `signal.poll.interval.ms`."""

    def __init__(self, config: Config) -> None:
        enabled = config[SIGNAL_ENABLED_CHANNELS]
        self._interval = config[SIGNAL_POLL_INTERVAL_MS] / 1000
        self._next = 0.0
        self._file = Path(config[SIGNAL_FILE]).absolute() if FILE in enabled else None
        folder = config[SIGNAL_FOLDER]
        self._folders = [_Folder(folder, lambda name: name.endswith(_ENDING))] if folder else []
        if self._file is not None:
            self._folders.append(_Folder(str(self._file.parent), lambda name: _is_claim(self._file, name)))
        self._topic = SignalTopic(config) if KAFKA in enabled else None

    @staticmethod
    def are_configured(config: Config) -> bool:
        """Whether any channel other than the signal table is configured."""
        return bool(config[SIGNAL_FOLDER] or {FILE, KAFKA} & {*config[SIGNAL_ENABLED_CHANNELS]})

    def poll(self, files: tuple[str, ...], topic: int | None, *, is_bounded: bool = False) -> Arrived | None:
        """The signals since the last poll; None if it is too early. `files` and `topic` are of a committed offset.

        A bounded run is never too early, as it may be over before the interval is.
        """
        now = time.monotonic()
        if now < self._next and not is_bounded:
            return None
        self._next = now + self._interval
        if self._file is not None:
            _claim(self._file)
        signals: list[Signal] = []
        names: list[str] = []
        for folder in self._folders:
            for name, text in folder.take(files):
                names.append(name)
                # A writer that keeps the file open without append mode leaves zeros in place of the old text.
                lines = [line for line in text.replace("\0", "").split("\n") if line.strip()]
                signals += [signal for line in lines if (signal := parsed(line, None)) is not None]
        if self._topic is not None:
            read, topic = self._topic.read(topic)
            signals += read
        return Arrived(tuple(signals), tuple(names), topic)

    def close(self) -> None:
        """Close the connection to Kafka."""
        if self._topic is not None:
            self._topic.close()


def send(folder: str, signal: Signal) -> str:
    """Write a signal into a pipeline's folder atomically; returns the file. Raises ConfigError.

    The names of such files ascend with time, so that signals are carried out in their order.
    """
    name = f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}"
    try:
        system, path = located(folder)
        system.create_dir(path, recursive=True)
        with system.open_output_stream(f"{path}/{name}.part") as stream:
            stream.write(signal.to_line().encode())
        system.move(f"{path}/{name}.part", f"{path}/{name}{_ENDING}")
    except (OSError, pa.ArrowException) as error:
        remedy = "A signal is a file there: see that this user may write it."
        raise ConfigError(f"the signal cannot be written: {error}", where=folder, remedy=remedy) from error
    return f"{path}/{name}{_ENDING}"


def is_there(folder: str, file: str) -> bool:
    """Whether a file that `send` wrote still exists: it is removed when the batch that read it is committed."""
    return bool(located(folder)[0].get_file_info(file).type == fs.FileType.File)


def is_pending(folder: str, signal: str) -> bool:
    """Whether a folder has a file with a signal, by its id, which no committed batch has read yet."""
    system, path = located(folder)
    try:
        files = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return any(_holds(system, file.path, signal) for file in files if file.base_name.endswith(_ENDING))
    except (OSError, pa.ArrowException) as error:
        log.warning("signals cannot be read from %s: %s", folder, error)
        return False


def _holds(system: fs.FileSystem, path: str, signal: str) -> bool:
    try:
        with system.open_input_stream(path) as stream:
            return signal.encode() in stream.read()
    except FileNotFoundError:  # a committed batch has read it
        return False


class _Folder:
    """Files of signals. A file is complete once `is_one` accepts its name."""

    def __init__(self, location: str, is_one: Callable[[str], bool]) -> None:
        self._location = location
        self._is_one = is_one
        self._is_silent = False
        self._place: tuple[fs.FileSystem, str] | None = None
        self._next = 0.0

    def take(self, done: tuple[str, ...]) -> list[tuple[str, str]]:
        """Names and texts of the first files, by name; those that are `done` are removed."""
        if time.monotonic() < self._next:
            return []
        try:
            # An object store is asked for the region of its bucket at each opening.
            system, root = self._place = self._place or located(self._location)
            files = system.get_file_info(fs.FileSelector(root, allow_not_found=True))
            taken: list[tuple[str, str]] = []
            for file in sorted(files, key=lambda file: file.base_name):
                if not self._is_one(file.base_name) or file.type != fs.FileType.File:
                    continue
                if file.base_name in done:
                    system.delete_file(file.path)
                    continue
                if len(taken) == MOST_FILES:
                    break
                with system.open_input_stream(file.path) as stream:
                    taken.append((file.base_name, stream.read().decode("utf-8", "replace")))
        except (OSError, pa.ArrowException) as error:
            # Logged once: signals by files do not work with a checkpoint that only Spark can read.
            level = logging.DEBUG if self._is_silent else logging.ERROR
            log.log(level, "signals cannot be read from %s: %s", self._location, error)
            self._is_silent, self._place = True, None
            # A store for which this process has no keys lets it wait for seconds, and with it the micro-batch.
            self._next = time.monotonic() + _AWAY_SECONDS if "://" in self._location else 0.0
            return []
        self._is_silent = False
        return taken


def _claim(file: Path) -> None:
    """Move the content of `signal.file` to another file, which stays until its signals are carried out.

    `signal.file` itself stays and is emptied, as its writer may keep it open.
    """
    part = file.with_name(f"{file.name}.part")
    try:
        with file.open("r+b") as stream:
            text = stream.read()
            # A driver that died between emptying the file and giving the copy its name: see below.
            if part.exists() and not text.startswith(part.read_bytes()):
                _name(part, file)
            if not text:
                return
            with part.open("wb") as copy:
                shutil.copymode(file, part)
                # Lines that are written during the copy belong to it as well.
                while text:
                    copy.write(text)
                    copy.flush()
                    os.fsync(copy.fileno())
                    text = stream.read()
            stream.truncate(0)
            os.fsync(stream.fileno())
        _name(part, file)
    except FileNotFoundError:
        return
    except OSError as error:
        log.error("signal.file %s cannot be read and emptied: %s", file, error.strerror)


def _name(part: Path, file: Path) -> None:
    part.rename(file.with_name(f"{file.name}.{time.time_ns():020d}"))


def _is_claim(file: Path | None, name: str) -> bool:
    return file is not None and name.startswith(f"{file.name}.") and name[len(file.name) + 1 :].isdigit()
