"""Debezium's Filter and ContentBasedRouter, with conditions in SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.config.kinds import PATTERN, TEXT, optional
from tailrace.errors import TransformError
from tailrace.events.records import Bools, Records
from tailrace.javalike import patterns as java
from tailrace.model.arrow import flags
from tailrace.transforms.settings import Given, either, setting
from tailrace.transforms.sql import Expression
from tailrace.transforms.transform import ByValues

DROP, KEEP, EVALUATE = "drop", "keep", "evaluate"
_SQL = "write language=sql and a condition such as: value.op = 'u' AND value.after.amount > 100"


_LANGUAGE = setting("language", TEXT, required=True)
_TOPIC_REGEX = setting("topic.regex", optional(PATTERN))
_NULL_HANDLING_MODE = setting("null.handling.mode", either(DROP, KEEP, EVALUATE), KEEP)


@dataclass(frozen=True)
class Scripted:
    """What both have: the expression, the topics it is for, and what becomes of records without a value."""

    expression: Expression
    topics: re.Pattern[str] | None
    nulls: str

    @staticmethod
    def read(given: Given, name: str) -> Scripted:
        """From the settings; the setting `name` contains the expression. Raises SettingsError."""
        own = setting(name, TEXT, required=True)
        config = given.read((_LANGUAGE, own, _TOPIC_REGEX, _NULL_HANDLING_MODE))
        language = config[_LANGUAGE].strip()
        if language.lower() != "sql":
            raise given.problem("language", f"expressions in {language} need Java, which is not here", _SQL)
        try:
            expression = Expression(config[own])
        except ValueError as error:
            raise given.problem(name, str(error), _SQL) from error
        topics = config[_TOPIC_REGEX]
        return Scripted(expression, java.pattern(topics) if topics else None, config[_NULL_HANDLING_MODE])

    def parts(self, records: Records) -> tuple[list[Records], Records]:
        """Records that pass without a look, and those that the expression is for."""
        asked = np.ones(len(records), np.bool_)
        if self.topics is not None:
            codes = records.topic.dictionary_encode()
            matches = [self.topics.fullmatch(topic) is not None for topic in codes.dictionary.to_pylist()]
            asked = flags(pa.array(matches, pa.bool_()).take(codes.indices))
        mine, passed = records.split(asked)
        out = [passed]
        if self.nulls != EVALUATE and len(mine):
            mine, nulls = mine.with_value()
            out += [nulls] if self.nulls == KEEP else []
        return out, mine

    def values(self, records: Records) -> pa.Array:
        """The expression's value for each record. Raises TransformError."""
        try:
            return self.expression.values(records)
        except ValueError as error:
            raise TransformError(f"the expression cannot be evaluated: {error}", where=self.expression.text) from error


@dataclass(frozen=True)
class ConditionFilter:
    """Keeps records for which the condition is true."""

    script: Scripted

    @staticmethod
    def of(given: Given) -> ConditionFilter:
        """From the transform's settings. Raises SettingsError."""
        return ConditionFilter(Scripted.read(given, "condition"))

    def apply(self, records: Records) -> list[Records]:
        """The records that stay."""
        out, asked = self.script.parts(records)
        return [*out, asked.split(self._holds(asked))[0]] if len(asked) else out

    def _holds(self, records: Records) -> Bools:
        values = self.script.values(records)
        if not (pa.types.is_boolean(values.type) or pa.types.is_null(values.type)):
            raise TransformError(f"the condition is {values.type}, not a truth", where=self.script.expression.text)
        return flags(pc.fill_null(values.cast(pa.bool_()), False))


@dataclass(frozen=True)
class ContentBasedRouter(ByValues):
    """Sends a record to the topic that the expression names; null leaves it where it is."""

    script: Scripted

    @staticmethod
    def of(given: Given) -> ContentBasedRouter:
        """From the transform's settings. Raises SettingsError."""
        return ContentBasedRouter(Scripted.read(given, "topic.expression"))

    def apply(self, records: Records) -> list[Records]:
        """The records under their new topics."""
        out, asked = self.script.parts(records)
        if not len(asked):
            return out
        values = self.script.values(asked)
        if not (pa.types.is_string(values.type) or pa.types.is_null(values.type)):
            raise TransformError(f"the topic is {values.type}, not a text", where=self.script.expression.text)
        return [*out, asked.with_(topic=pc.coalesce(values.cast(pa.string()), asked.topic))]
