"""Post processors: the names in `post.processors` and the settings `<name>.*` of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tailrace.config.options.events import (
    POST_PROCESSORS,
    RESELECT_ERROR_HANDLING_MODE,
    RESELECT_EXCLUDE,
    RESELECT_INCLUDE,
    RESELECT_NULL_VALUES,
    RESELECT_UNAVAILABLE_VALUES,
    RESELECT_USE_EVENT_KEY,
    TYPE_OF_PART,
)
from tailrace.config.resolve import Config, Problem
from tailrace.model.table_id import TableId

RESELECT = "io.debezium.processors.reselect.ReselectColumnsPostProcessor"
Patterns = tuple[re.Pattern[str], ...]


@dataclass(frozen=True, slots=True)
class Reselect:
    """What ReselectColumnsPostProcessor is to do; columns are matched as `table:column`."""

    include: Patterns
    exclude: Patterns
    unavailable: bool
    null: bool
    by_event_key: bool
    strict: bool

    def wants(self, table: TableId, column: str) -> bool:
        """Whether a column is among those looked up again; the table is named as in filters, or by its shown parts."""
        names = {f"{name}:{column}" for name in (table.filtered, str(table))}
        if self.include:
            return any(pattern.fullmatch(name) for pattern in self.include for name in names)
        return not any(pattern.fullmatch(name) for pattern in self.exclude for name in names)


def reselect(config: Config) -> Reselect | None:
    """The reselect processor of the configuration, None when there is none."""
    for name in config[POST_PROCESSORS]:
        if config.get(TYPE_OF_PART.named(name), "") == RESELECT:
            return _reselect(config, name)
    return None


def _reselect(config: Config, name: str) -> Reselect:
    return Reselect(
        config.get(RESELECT_INCLUDE.named(name), ()),
        config.get(RESELECT_EXCLUDE.named(name), ()),
        config.get(RESELECT_UNAVAILABLE_VALUES.named(name), True),
        config.get(RESELECT_NULL_VALUES.named(name), True),
        config.get(RESELECT_USE_EVENT_KEY.named(name), False),
        config.get(RESELECT_ERROR_HANDLING_MODE.named(name), "") == "fail",
    )


def check_processors(config: Config) -> Iterator[Problem]:
    """Processors without a known type."""
    for name in config[POST_PROCESSORS]:
        if config.get(TYPE_OF_PART.named(name), "") != RESELECT:
            yield Problem(TYPE_OF_PART.named(name).name, f"only {RESELECT} is known", "Java classes cannot be loaded")
