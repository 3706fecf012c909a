"""One result of a check, for people: an OK line, a warning or an error, each with its remedy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """`name` says what was looked at; `ok` is False for an error, None for a warning; `remedy` mends it."""

    name: str
    ok: bool | None
    what: str
    remedy: str | None = None
