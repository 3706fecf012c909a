"""Runs the pipelines of a folder in this process, in one Spark, and follows its files: added, changed and removed."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tailrace.errors import ConfigError, TailraceError
from tailrace.operate.contents import PipelineContents
from tailrace.operate.member import FleetMember, Listener
from tailrace.operate.pipelines import Pipelines
from tailrace.operate.server import Refusal
from tailrace.operate.steering import Steering
from tailrace.operate.watch import Figures
from tailrace.override import override
from tailrace.pipeline.definition import Definition, load
from tailrace.pipeline.shared_session import SharedSession

log = logging.getLogger(__name__)

SUFFIXES = (".yaml", ".yml")


def files(folder: Path) -> dict[Path, bytes]:
    """The pipeline files of a folder with their contents, by name; hidden ones are left out.

    A file that is being replaced is there at the next look. Raises ConfigError for a folder that cannot be read.
    """
    contents = dict[Path, bytes]()
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(folder)) from error
    for file in entries:
        if file.name.startswith(".") or not file.name.endswith(SUFFIXES):
            continue
        try:
            contents[file] = file.read_bytes()
        except OSError as error:
            log.warning("%s cannot be read: %s", file, error.strerror)
    return contents


def log_of(folder: Path) -> Path:
    """The log of the Spark that the pipelines of a folder share."""
    return Path(tempfile.gettempdir()) / f"tailrace-{folder.resolve().name or 'root'}.log"


def settings(definitions: Sequence[Definition]) -> dict[str, Any]:
    """The settings of the one Spark, from all pipelines. Raises ConfigError where two of them differ."""
    settings_of_all = dict[str, Any]()
    for definition in definitions:
        for name, value in definition.spark.items():
            if settings_of_all.setdefault(name, value) != value:
                raise _other_settings(definition, name)
    return settings_of_all


def _other_settings(definition: Definition, name: str) -> ConfigError:
    return ConfigError(
        f"{name} is another one than in the Spark that all pipelines of the folder share",
        where=f"{definition.name}: spark",
        remedy="give all files of the folder the same settings and start the process again, or run this one alone",
    )


class Fleet(Pipelines):
    """The pipelines of a folder. `listener` makes who is told what happens to one of them."""

    def __init__(
        self,
        folder: Path,
        session: SharedSession,
        shared: Mapping[str, Any],
        listener: Callable[[Definition], Listener],
        refused: Callable[[Path, TailraceError], None],
        *,
        once: bool = False,
    ) -> None:
        self._folder, self._session, self._shared = folder, session, shared
        self._listener, self._refused, self._once = listener, refused, once
        self._contents, self._digests = PipelineContents(), dict[Path, str]()
        self._members = dict[Path, FleetMember]()
        self._broken = dict[Path, TailraceError]()

    def look(self) -> None:
        """Start, replace and end pipelines as the files say. Raises ConfigError for a folder that is gone."""
        contents = files(self._folder)
        for file in [each for each in self._digests if each not in contents]:
            del self._digests[file]
            self._broken.pop(file, None)
            self._end(file)
        for file, content in contents.items():
            digest = self._contents.digest(file, content)
            if self._digests.get(file) != digest:
                self._digests[file] = digest
                self._read(file)

    @property
    def is_over(self) -> bool:
        """Whether all of them have ended for good."""
        return all(member.is_over for member in self._members.values())

    @property
    def errors(self) -> list[TailraceError]:
        """What is the matter with files and pipelines now."""
        members = [member.error for member in self._members.values() if member.error is not None]
        return [*self._broken.values(), *members]

    def close(self) -> None:
        """End all pipelines, side by side."""
        for member in self._members.values():
            member.steering.want("closed")
        for member in self._members.values():
            member.close()

    @override
    def figures(self) -> Sequence[Figures]:
        all_figures = [member.watch.figures() for member in list(self._members.values())]
        return sorted(all_figures, key=lambda each: each.definition.name)

    @override
    def broken(self) -> Mapping[str, TailraceError]:
        return {file.name: error for file, error in list(self._broken.items())}

    @override
    def file(self, name: str) -> Path | None:
        files_of_name = [file for file, member in list(self._members.items()) if member.definition.name == name]
        return files_of_name[0] if files_of_name else None

    @override
    def steering(self, name: str) -> Steering:
        for member in list(self._members.values()):
            if member.definition.name == name:
                return member.steering
        raise Refusal(404, f"there is no pipeline {name}")

    def _read(self, file: Path) -> None:
        """Start the pipeline of a file that is new or changed. One that cannot be read leaves the old one running."""
        try:
            definition = self._checked(file, load(file))
        except TailraceError as error:
            self._broken[file] = error
            self._refused(file, error)
            return
        self._broken.pop(file, None)
        self._end(file)
        self._members[file] = FleetMember(definition, self._session, self._listener(definition), once=self._once)

    def _checked(self, file: Path, definition: Definition) -> Definition:
        definition.config()
        for other, member in self._members.items():
            if other != file and member.definition.name == definition.name:
                remedy = "give each pipeline of a folder a `name` of its own"
                raise ConfigError(
                    f"{other.name} has the name {definition.name} as well", where=str(file), remedy=remedy
                )
        for name, value in definition.spark.items():
            if self._shared.get(name) != value:
                raise _other_settings(definition, name)
        return definition.model_copy(update={"trigger": "availableNow"}) if self._once else definition

    def _end(self, file: Path) -> None:
        member = self._members.pop(file, None)
        if member is not None:
            member.steering.want("closed")
            member.close()
