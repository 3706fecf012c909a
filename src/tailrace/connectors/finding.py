"""One result of a check, for people: an OK line, a warning or an error, each with its remedy."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.config import Config

# The finding of a sink that cannot be reached.
SINK = "sink"


@dataclass(frozen=True, slots=True)
class Finding:
    """`name` is what was checked; `ok` is False for an error, None for a warning; `remedy` fixes it."""

    name: str
    ok: bool | None
    what: str
    remedy: str | None = None


def warnings(config: Config) -> list[Finding]:
    """The properties that are ignored or outdated, each with what to do about it."""
    return [Finding(each.name, None, each.message, each.remedy) for each in config.warnings]
