"""Formats quantities for people."""

from __future__ import annotations

from datetime import datetime, timezone


def size(number: int) -> str:
    """A number of bytes: 17 B, 1.2 MB.

    >>> size(1_234_567)
    '1.2 MB'
    """
    amount = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def counted(number: int, noun: str) -> str:
    """A number of things: 1 row, 2,000 rows.

    >>> counted(2000, "row")
    '2,000 rows'
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def moment(ts_us: int) -> str:
    """An instant, in microseconds since 1970, to the second.

    >>> moment(1_764_000_000_000_000)
    '2025-11-24 16:00:00 UTC'
    """
    return datetime.fromtimestamp(ts_us // 1_000_000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
