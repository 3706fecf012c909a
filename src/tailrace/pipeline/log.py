"""The log file of Spark and Java: finds the warnings of Tailrace's own processes in it, and rotates it."""

from __future__ import annotations

import logging
import os
import re
import shutil
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

log = logging.getLogger(__name__)

# Bytes of the file, and how many earlier ones are kept beside it as <name>.1, <name>.2, ...
LARGEST, KEPT = 32 << 20, 3

# As spark.logs writes a line. What belongs to it on further lines is indented.
_OURS = re.compile(r"\d{4}-\d\d-\d\d [\d:,]+ (?P<level>WARNING|ERROR|CRITICAL) tailrace[\w.]*: (?P<text>.*)")
_FURTHER = "  "


@dataclass(frozen=True)
class Warned:
    """A message of our own at WARNING or above."""

    level: str
    text: str


class LogFile:
    """A log that another process appends to; `news` reads on from where the file ended when this was created."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = path.stat().st_size if path.exists() else 0
        self._largest = LARGEST

    def news(self) -> list[Warned]:
        """Our own warnings since the last call, complete lines only. A file that became too large is rotated."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._read)
                new = file.read()
        except OSError as error:  # the run goes on without
            log.debug("%s cannot be read: %s", self.path, error)
            return []
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        if self._read > self._largest and len(whole) == len(new):
            self._rotate()
        return warnings(whole.decode(errors="replace"))

    def _rotate(self) -> None:
        """Rotate the file; if that fails, on a full disk for instance, again when as much has come once more."""
        try:
            rotate(self.path)
            self._read, self._largest = 0, LARGEST
        except OSError as error:
            self._largest = self._read + LARGEST
            log.warning("%s is too large and cannot be rotated: %s", self.path, error.strerror)


def warnings(text: str) -> list[Warned]:
    """Our own messages in lines of a log, each with its further lines."""
    messages: list[Warned] = []
    belongs = False
    for line in text.splitlines():
        match = _OURS.fullmatch(line)
        if match:
            messages.append(Warned(match["level"], match["text"]))
        elif belongs and line.startswith(_FURTHER):
            messages[-1] = Warned(messages[-1].level, f"{messages[-1].text}\n{line}")
        belongs = bool(match) or (belongs and line.startswith(_FURTHER))
    return messages


def rotate(path: Path) -> None:
    """Move the content to <name>.1, that of <name>.1 to <name>.2 and so on; the file itself stays, and is then empty.

    Java has it open and goes on appending to it. A line that comes between the copy and the cut is lost.
    """
    numbered = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, KEPT + 1))]
    for newer, older in reversed(list(pairwise(numbered[1:]))):
        if newer.exists():
            newer.replace(older)
    # A new file: a link in its place would lead the copy to somebody else's file.
    numbered[1].unlink(missing_ok=True)
    copy = os.open(numbered[1], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(copy, "wb") as older_file, path.open("rb") as file:
        shutil.copyfileobj(file, older_file)
    os.truncate(path, 0)
