"""The errors of Tailrace, written for a person: what happened, where, why, and how to fix it.

TailraceError
├── ConfigError        a property is wrong, missing or in conflict; nothing was touched on a server
├── SourceError        the database refuses, lacks or lost something (slot, publication, privilege, log)
│   └── SourceAwayError  ... for now: the same may succeed later
├── DecodeError        bytes of the log or a value of a row could not be understood; never skipped in silence
├── TransformError     a record that a transform cannot take
├── SignalError        a signal asks for something that cannot be done, or for too much at a time
├── OffsetError        a checkpoint is another source's, of a newer version, or behind what the slot still holds
└── SinkError          a target cannot be written
    ├── TableError       the rows of one table cannot be written as they are; other tables can
    │   └── ShapeError     ... to a table of this shape; to a new one they can, so reading the table again is a cure
    ├── SinkAwayError    ... for now: the same may succeed later
    └── FencedError    another run of the pipeline has taken over the target

SourceAwayError and SinkAwayError are PassingErrors, after which `tailrace run` starts the query again.
"""

from __future__ import annotations

import re

from tailrace.override import override

# What an address shows in place of a password.
HIDDEN = "********"
_IN_ADDRESS = re.compile(r"(://[^/:\s]*:)[^/\s]*@")
_AS_SETTING = re.compile(r"([;?&](?:pwd|password)=)[^;&\s]+", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """A text whose addresses (`scheme://user:password@host`, `host;pwd=password`) have no passwords."""
    return _AS_SETTING.sub(rf"\1{HIDDEN}", _IN_ADDRESS.sub(rf"\1{HIDDEN}@", text))


class TailraceError(Exception):
    """An error with its remedy.

    `where` names the table, property or position concerned; `remedy` the command or setting that fixes it. Both are
    part of the text, so that they survive Spark's wrapping of a Python error. What and where have no password of an
    address, not even of one in a property that takes none.
    """

    def __init__(self, what: str, *, where: str | None = None, remedy: str | None = None) -> None:
        self.what = what = without_passwords(what)
        self.where = where = None if where is None else without_passwords(where)
        self.remedy = remedy
        text = what if where is None else f"{where}: {what}"
        super().__init__(text if remedy is None else f"{text}\n  Remedy: {remedy}")

    @property
    def line(self) -> str:
        """The text on one line, without the place."""
        return self.what if self.remedy is None else f"{self.what}; remedy: {self.remedy}"

    @override
    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.where, self.remedy)


def _rebuild(kind: type[TailraceError], what: str, where: str | None, remedy: str | None) -> TailraceError:
    return kind(what, where=where, remedy=remedy)


class PassingError(TailraceError):
    """What failed may succeed later, although nobody changes a setting, a table or a privilege."""


class ConfigError(TailraceError):
    """A property is wrong, missing or in conflict with another."""


class SourceError(TailraceError):
    """The database refuses, lacks or lost something that capturing needs."""


class SourceAwayError(SourceError, PassingError):
    """The database is out of reach for now, or has ended a connection or a snapshot that was in use."""


class DecodeError(TailraceError):
    """Bytes of the log, or a value of a row, that cannot be understood."""


class TransformError(TailraceError):
    """A record that a single message transform cannot take; the reference would stop there, too."""


class SignalError(TailraceError):
    """A signal that is not carried out."""


class OffsetError(TailraceError):
    """A checkpoint that does not fit the source."""


class SinkError(TailraceError):
    """A target that cannot be written."""


class TableError(SinkError):
    """The rows of one table cannot be written as they are, however often that is tried; other tables can."""


class ShapeError(TableError):
    """The rows of one table do not fit the shape that its target has; a new target would take them."""


class SinkAwayError(SinkError, PassingError):
    """A target that is out of reach for now."""


class FencedError(SinkError):
    """Another run of the pipeline has taken over the target; this one may not write any more."""
