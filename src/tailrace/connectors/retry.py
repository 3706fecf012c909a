"""Waits as properties say: between reconnects, and before a snapshot or the stream."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from tailrace.config import Config
from tailrace.config.option import Option
from tailrace.config.options.runtime import (
    ERRORS_MAX_RETRIES,
    INTERNAL_CUSTOM_RETRIABLE_EXCEPTION,
    RETRIABLE_RESTART_CONNECTOR_WAIT_MS,
)
from tailrace.errors import TailraceError
from tailrace.javalike.patterns import to_python

log = logging.getLogger(__name__)

T = TypeVar("T")
_FIRST_SECONDS = 0.5  # guessed
_MOST_DOUBLINGS = 30  # an outage of hours passes what a float holds


class Backoff:
    """Growing pauses up to `retriable.restart.connector.wait.ms`, `errors.max.retries` of them (-1: for ever)."""

    def __init__(self, config: Config) -> None:
        self.longest = config[RETRIABLE_RESTART_CONNECTOR_WAIT_MS] / 1000
        self.retries = config[ERRORS_MAX_RETRIES]
        self.reset()

    def reset(self) -> None:
        """The database answered: the next trouble starts with a short pause again."""
        self.tried = 0

    def wait(self, error: Exception) -> None:
        """Sleep before another try. Raises the error when the tries are used up."""
        if 0 <= self.retries <= self.tried:
            raise error
        pause = min(_FIRST_SECONDS * 2 ** min(self.tried, _MOST_DOUBLINGS), self.longest)
        self.tried += 1
        said = str(error).splitlines()[0]
        if isinstance(error, TailraceError) and error.remedy is not None:
            said += f"; remedy: {error.remedy}"
        log.warning("%s; trying again in %.1f s (try %d)", said, pause, self.tried)
        time.sleep(pause)


def driver_error_of(error: BaseException) -> BaseException:
    """The driver's error that caused one of Tailrace's; any other error itself."""
    while isinstance(error, TailraceError) and error.__cause__ is not None:
        error = error.__cause__
    return error


def is_listed(config: Config, error: BaseException | None) -> bool:
    """Whether internal.custom.retriable.exception matches the message of an error or of what caused it.

    As in Debezium the expression must match the whole message; here a match of its first line is enough as well.
    """
    pattern = config[INTERNAL_CUSTOM_RETRIABLE_EXCEPTION]
    while pattern and error is not None:
        said = str(error)
        if any(re.fullmatch(to_python(pattern), text) for text in (said, said.split("\n", 1)[0])):
            return True
        error = error.__cause__
    return False


def retrying(config: Config, attempt: Callable[[], T], transient: Callable[[BaseException], bool]) -> T:
    """The result of `attempt`, tried again while its error is a transient one, or one that the configuration lists."""
    backoff = Backoff(config)
    while True:
        try:
            return attempt()
        except Exception as error:  # noqa: PERF203  # the loop is the retrying
            if not transient(error) and not is_listed(config, error):
                raise
            backoff.wait(error)


def at_once(config: Config) -> Config:
    """The configuration for a command that somebody waits for: an error is reported, and nothing is tried again."""
    return replace(config, values={**config.values, ERRORS_MAX_RETRIES.name: 0})


def pause(config: Config, option: Option[int]) -> None:
    """Wait as long as the property says."""
    if config[option]:
        log.info("waiting as %s says: %d ms", option.name, config[option])
        time.sleep(config[option] / 1000)
