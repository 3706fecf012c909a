"""Computes the start of a logical message's WAL record; the stream contains only its end.

The server skips such messages by the start of their record (SnapBuildXactNeedsSkip in its decode.c), so stretches of
the log have to be distinguished by it. Sizes: access/xlogrecord.h, access/xlog_internal.h, replication/message.h.
"""

from __future__ import annotations

_PAGE, _SEGMENT = 8192, 16 << 20
_LONG_PAGE_HEADER, _PAGE_HEADER = 40, 24
_RECORD_HEADER, _MESSAGE_HEADER, _ALIGNMENT = 24, 24, 8
_SHORT_DATA = 255


def record_start(end: int, payload: int) -> int:
    """The LSN of a message's record that ends at LSN `end`; `payload`: bytes of prefix (with NUL) and content."""
    data = _MESSAGE_HEADER + payload
    size = _RECORD_HEADER + (2 if data <= _SHORT_DATA else 5) + data
    left = -(-size // _ALIGNMENT) * _ALIGNMENT
    at = end
    while True:
        page = (at - 1) // _PAGE * _PAGE
        first = page + (_PAGE_HEADER if page % _SEGMENT else _LONG_PAGE_HEADER)
        if left <= at - first:
            return at - left
        left -= at - first
        at = page
