"""Reads requests: batches, remote procedure calls, transaction manager requests."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from .transcode import from_utf16
from .values import Parameter, Reader, read_parameter

PROCEDURE_NUMBERS = {
    1: "sp_cursor",
    2: "sp_cursoropen",
    3: "sp_cursorprepare",
    4: "sp_cursorexecute",
    5: "sp_cursorprepexec",
    6: "sp_cursorunprepare",
    7: "sp_cursorfetch",
    8: "sp_cursoroption",
    9: "sp_cursorclose",
    10: "sp_executesql",
    11: "sp_prepare",
    12: "sp_execute",
    13: "sp_prepexec",
    14: "sp_prepexecrpc",
    15: "sp_unprepare",
}
BEGIN, COMMIT, ROLLBACK, SAVE = 5, 7, 8, 9
LEVELS = {1: "READ UNCOMMITTED", 2: "READ COMMITTED", 3: "REPEATABLE READ", 4: "SERIALIZABLE", 5: "SNAPSHOT"}
_NEXT_CALL = (0x80, 0xFF, 0xFE)


@dataclass
class Call:
    """A remote procedure call."""

    procedure: str
    parameters: list[Parameter] = field(default_factory=list)


@dataclass
class TransactionRequest:
    """A request of a transaction manager: begin, commit, roll back, save."""

    action: int
    name: str = ""
    isolation: str | None = None
    begin_next: bool = False


def _after_headers(content: bytes) -> int:
    """Where the request begins behind its headers."""
    (length,) = struct.unpack_from("<I", content, 0)
    return int(length)


def batch(content: bytes) -> str:
    """The text of a batch."""
    return from_utf16(content[_after_headers(content) :])


def calls(content: bytes) -> list[Call]:
    """The calls of a message."""
    reader = Reader(content, _after_headers(content))
    found = []
    while not reader.at_end:
        length = reader.number("<H")
        if length == 0xFFFF:
            name = PROCEDURE_NUMBERS.get(reader.number("<H"), "")
        else:
            name = reader.take(2 * length).decode("utf-16-le")
        reader.take(2)
        call = Call(name)
        while not reader.at_end and content[reader.position] not in _NEXT_CALL:
            call.parameters.append(read_parameter(reader))
        reader.take(1)
        found.append(call)
    return found


def transaction(content: bytes) -> TransactionRequest:
    """A transaction manager request."""
    reader = Reader(content, _after_headers(content))
    action = reader.number("<H")
    if action == BEGIN:
        isolation = LEVELS.get(reader.number("<B"))
        return TransactionRequest(action, reader.short_text(), isolation)
    request = TransactionRequest(action, reader.short_text())
    if action in (COMMIT, ROLLBACK) and not reader.at_end and reader.number("<B") & 1:
        request.begin_next = True
        request.isolation = LEVELS.get(reader.number("<B"))
    return request
