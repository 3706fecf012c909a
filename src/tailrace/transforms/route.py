"""The route step and Kafka Connect's RegexRouter: rename topics by a regular expression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from tailrace.config.kinds import TEXT
from tailrace.events.records import Records
from tailrace.javalike.patterns import Rewrite
from tailrace.model.change import ChangeBatch
from tailrace.transforms.settings import Given, setting

OPTIONS = (_REGEX := setting("regex", TEXT, required=True), _REPLACEMENT := setting("replacement", TEXT, required=True))


@dataclass(frozen=True)
class Route:
    """Renames a topic that the expression matches as a whole; others keep their name. Schema names stay as they are."""

    rewrite: Rewrite

    @staticmethod
    def of(regex: str, replacement: str) -> Route:
        """A route from Java's forms: `$1` or `${name}` in the replacement, `(?<name>...)` in the expression.

        Raises ValueError.
        """
        for name, given in (("regex", regex), ("replacement", replacement)):
            if not isinstance(given, str):
                raise ValueError(f"{name} should be text: put it in quotes")
        try:
            return Route(Rewrite.of(regex, replacement))
        except ValueError as error:
            raise ValueError(f"regex {regex!r} with replacement {replacement!r}: {error}") from error

    @staticmethod
    def from_settings(given: Given) -> Route:
        """RegexRouter's settings. Raises SettingsError."""
        config = given.read(OPTIONS)
        try:
            return Route.of(config[_REGEX], config[_REPLACEMENT])
        except ValueError as error:
            raise given.problem("regex", str(error)) from error

    def keep(self, batch: ChangeBatch) -> ChangeBatch:
        """A route drops nothing."""
        return batch

    def topic(self, topic: str) -> str:
        """The new name of a topic."""
        name = self.rewrite(topic)
        return topic if name is None else name

    def apply(self, records: Records) -> list[Records]:
        """The records under the new names of their topics."""
        topics = renamed(records.topic, self.topic)
        # A record whose topic stays is the same record still, and shares its headers.
        return [records if topics.equals(records.topic) else records.with_(topic=topics)]


def renamed(topics: pa.Array, name: Callable[[str], str]) -> pa.Array:
    """A column of topics, each different one renamed once."""
    codes = topics.dictionary_encode()
    return pa.array([name(topic) for topic in codes.dictionary.to_pylist()], pa.string()).take(codes.indices)
