"""Post processors: the names in `post.processors` and the settings `<name>.*` of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

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
    for name in config.names("post.processors"):
        if config.values.get(f"{name}.type") == RESELECT:
            return _reselect(config, f"{name}.reselect.")
    return None


def _reselect(config: Config, prefix: str) -> Reselect:
    def patterns(setting: str) -> Patterns:
        return config.patterns(prefix + setting) if prefix + setting in config.values else ()

    def flag(setting: str, default: bool) -> bool:
        return config.flag(prefix + setting) if prefix + setting in config.values else default

    return Reselect(
        patterns("columns.include.list"),
        patterns("columns.exclude.list"),
        flag("unavailable.values", True),
        flag("null.values", True),
        flag("use.event.key", False),
        config.values.get(f"{prefix}error.handling.mode") == "fail",
    )


def check_processors(config: Config) -> Iterator[Problem]:
    """Processors without a known type."""
    for name in config.names("post.processors"):
        if config.values.get(f"{name}.type") != RESELECT:
            yield Problem(f"{name}.type", f"only {RESELECT} is known", "Java classes cannot be loaded")
