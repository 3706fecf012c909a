"""Kafka Connect's predicates: they select the records that a transform is applied to."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tailrace.config.kinds import TEXT
from tailrace.events.records import Bools, Records
from tailrace.javalike import patterns as java
from tailrace.model.arrow import flags
from tailrace.transforms.settings import Given, setting

_PATTERN = setting("pattern", TEXT, required=True)
_NAME = setting("name", TEXT, required=True)


@dataclass(frozen=True)
class TopicNameMatches:
    """Records whose topic the expression matches as a whole."""

    pattern: re.Pattern[str]

    @staticmethod
    def of(given: Given) -> TopicNameMatches:
        """From the predicate's settings. Raises SettingsError."""
        text = given.read((_PATTERN,))[_PATTERN]
        try:
            return TopicNameMatches(java.pattern(text))
        except re.error as error:
            raise given.problem("pattern", f"{text!r} is no regular expression: {error}") from error

    def holds(self, records: Records) -> Bools:
        """Record by record whether it holds."""
        codes = records.topic.dictionary_encode()
        matches = [self.pattern.fullmatch(topic) is not None for topic in codes.dictionary.to_pylist()]
        return flags(pa.array(matches, pa.bool_()).take(codes.indices))


@dataclass(frozen=True)
class HasHeaderKey:
    """Records that have a header of the name."""

    name: str

    @staticmethod
    def of(given: Given) -> HasHeaderKey:
        """From the predicate's settings. Raises SettingsError."""
        return HasHeaderKey(given.read((_NAME,))[_NAME])

    def holds(self, records: Records) -> Bools:
        """Record by record whether it holds."""
        matches = np.zeros(len(records), np.bool_)
        for header in records.headers:
            if header.name == self.name:
                matches |= header.where(len(records))
        return matches


@dataclass(frozen=True)
class RecordIsTombstone:
    """Records without a value, also those whose value is null under a schema."""

    @staticmethod
    def of(given: Given) -> RecordIsTombstone:
        """It has no settings. Raises SettingsError."""
        given.read(())
        return RecordIsTombstone()

    def holds(self, records: Records) -> Bools:
        """Record by record whether it holds."""
        if records.value is None:
            return np.ones(len(records), np.bool_)
        if records.value.column is None:
            return np.zeros(len(records), np.bool_)
        return flags(records.value.values.is_null())
