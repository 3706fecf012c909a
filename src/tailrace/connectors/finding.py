"""One result of a check, for people: an OK line, a warning or an error, each with its remedy."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from tailrace.config import Config
from tailrace.config.options.runtime import CONNECTION_VALIDATION_TIMEOUT_MS
from tailrace.errors import without_passwords

Answer = TypeVar("Answer")
# The findings of a sink that cannot be reached, and of a catalog that lacks tables of a replica.
SINK, CATALOG = "sink", "catalog"


@dataclass(frozen=True, slots=True)
class Finding:
    """`name` is what was checked; `ok` is False for an error, None for a warning; `remedy` fixes it.

    `what` has no password of an address, see TailraceError.
    """

    name: str
    ok: bool | None
    what: str
    remedy: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "what", without_passwords(self.what))


def catalog_warnings(lines: Iterable[str]) -> tuple[Finding, ...]:
    """What keeps tables from being registered, by lines as TailraceError has them: rows arrive, whoever finds them."""
    parts = (line.partition("; remedy: ") for line in lines)
    return tuple(Finding(CATALOG, None, what, remedy or None) for what, _, remedy in parts)


def warnings(config: Config) -> list[Finding]:
    """The properties that are ignored or outdated, each with what to do about it."""
    return [Finding(each.name, None, each.message, each.remedy) for each in config.warnings]


def within_limit(config: Config, look: Callable[[], list[Finding]]) -> list[Finding]:
    """What `look` finds; where it takes longer than the property allows, that is the finding, in the reference's words.

    A driver may be in a call that nothing can interrupt, so it is left to itself then.
    """
    limit = config[CONNECTION_VALIDATION_TIMEOUT_MS]
    try:
        return answered(look, limit / 1000)
    except TimeoutError:
        remedy = f"see why the server is slow to answer, or raise {CONNECTION_VALIDATION_TIMEOUT_MS.name}"
        return [Finding("connection", False, f"Connection validation timed out after {limit} ms", remedy)]


def answered(ask: Callable[[], Answer], seconds: float) -> Answer:
    """What `ask` returns or raises. Raises TimeoutError after so many seconds, and leaves it to itself then."""
    answers: queue.Queue[tuple[Answer] | BaseException] = queue.Queue()

    def asked() -> None:
        try:
            answers.put((ask(),))
        except BaseException as error:  # raised by who waits for it
            answers.put(error)

    threading.Thread(target=asked, name="tailrace-check", daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(answer, BaseException):
        raise answer
    return answer[0]
