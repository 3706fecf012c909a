"""Finds the masks, cuts and propagated types (`column.mask.*`, `column.truncate.*`, ...) of each column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tailrace.config.option import Option, without_salt
from tailrace.config.options.filters import (
    COLUMN_MASK,
    COLUMN_MASK_HASH,
    COLUMN_OUT_OF_RANGE_NULL,
    COLUMN_OUT_OF_RANGE_TEXT,
    COLUMN_PROPAGATE_SOURCE_TYPE,
    COLUMN_TRUNCATE,
    DATATYPE_PROPAGATE_SOURCE_TYPE,
)
from tailrace.config.resolve import Config, Problem
from tailrace.model.masked import digest_name
from tailrace.model.masks import Hash as Hash
from tailrace.model.masks import Stars as Stars
from tailrace.model.masks import Truncate as Truncate
from tailrace.model.table import ERROR, NULL, TEXT, TableId

Patterns = tuple[re.Pattern[str], ...]


@dataclass(frozen=True, slots=True)
class Propagate:
    """Parameters of the column's schema contain its type; the value is not changed."""


Mask = Truncate | Stars | Hash | Propagate

_TRUNCATE = re.compile(r"column\.truncate\.to\.(\d+)\.chars", re.IGNORECASE)
_STARS = re.compile(r"column\.mask\.with\.(\d+)\.chars", re.IGNORECASE)
_HASH = re.compile(r"column\.mask\.hash\.(v2\.)?([^.]+)\.with\.salt\.(.+)", re.IGNORECASE)
_FORMS = ((COLUMN_TRUNCATE, _TRUNCATE), (COLUMN_MASK, _STARS), (COLUMN_MASK_HASH, _HASH))


@dataclass(frozen=True, slots=True)
class ColumnMasks:
    """The rules in Debezium's order: of those that match a column, the first counts."""

    rules: tuple[tuple[Patterns, Mask], ...]
    by_type: Patterns

    @staticmethod
    def from_config(config: Config) -> ColumnMasks:
        """The rules of all families of properties."""
        truncated = [(patterns, Truncate(int(m[1]))) for m, patterns in _family(config, COLUMN_TRUNCATE, _TRUNCATE)]
        starred = [(patterns, Stars(int(m[1]))) for m, patterns in _family(config, COLUMN_MASK, _STARS)]
        hashed = [(patterns, Hash(m[2], m[3], not m[1])) for m, patterns in _family(config, COLUMN_MASK_HASH, _HASH)]
        propagated = (config[COLUMN_PROPAGATE_SOURCE_TYPE], Propagate())
        hashed.sort(key=lambda rule: not rule[1].serialized)
        return ColumnMasks((*truncated, *starred, propagated, *hashed), config[DATATYPE_PROPAGATE_SOURCE_TYPE])

    def of(self, table: TableId, column: str, type_name: str) -> Mask | None:
        """The rule for a column; `type_name` is the database's own name of its type."""
        names = table.column(column)
        rule = next((mask for patterns, mask in self.rules if _matches(patterns, names)), None)
        if (rule is None or isinstance(rule, Hash)) and _matches(self.by_type, table.column(type_name)):
            return Propagate()
        return rule


def _family(
    config: Config, family: Option[Patterns], form: re.Pattern[str]
) -> Iterator[tuple[re.Match[str], Patterns]]:
    """The properties of a family: the parts of the name, and the value; names of another form are check_masks's."""
    for name, patterns in config.members(family).items():
        match = form.fullmatch(name)
        if match is not None:
            yield match, patterns


@dataclass(frozen=True, slots=True)
class OutOfRange:
    """What becomes of dates and times that no type of a table holds, by column."""

    null: Patterns
    text: Patterns

    @staticmethod
    def from_config(config: Config) -> OutOfRange:
        """The rules of `column.out.of.range.*`."""
        return OutOfRange(config[COLUMN_OUT_OF_RANGE_NULL], config[COLUMN_OUT_OF_RANGE_TEXT])

    def of(self, table: TableId, column: str, *, is_key: bool) -> str:
        """The rule for a column; text before null. A key is never null: rows would be taken for one another."""
        names = table.column(column)
        if _matches(self.text, names):
            return TEXT
        return NULL if _matches(self.null, names) and not is_key else ERROR


def _matches(patterns: Patterns, names: tuple[str, ...]) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns for name in names)


def check_masks(config: Config) -> Iterator[Problem]:
    """Names of masks that say nothing, so that nothing would be masked, and hash algorithms that do not exist here."""
    for family, form in _FORMS:
        for name in config.members(family):
            if form.fullmatch(name) is None:
                yield Problem(without_salt(name), "is no mask, so that nothing would be masked", f"write {family.name}")
    for name in config.given:
        match = _HASH.fullmatch(name)
        if match is not None and digest_name(match[2]) is None:
            message = f"{match[2]} is no hash algorithm of this machine"
            yield Problem(COLUMN_MASK_HASH.name, message, "use SHA-256, SHA-512 or MD5")
