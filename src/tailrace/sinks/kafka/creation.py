"""Creates topics as Kafka Connect does: by topic.creation.* of the connector, before the first record is sent.

Without these properties the brokers decide, by auto.create.topics.enable and their own defaults.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from tailrace.config import Config
from tailrace.config.kinds import split_list
from tailrace.config.options.runtime import TOPIC_CREATION
from tailrace.errors import ConfigError
from tailrace.javalike.patterns import compile_pattern
from tailrace.sinks.kafka import state
from tailrace.sinks.kafka.client import Settings, library, refused

log = logging.getLogger(__name__)

PREFIX, _DEFAULT = TOPIC_CREATION.name.removesuffix("*"), "default"
# The topics of each cluster that this process knows to be there.
_known: set[tuple[str, str]] = set()


@dataclass(frozen=True)
class Group:
    """Topics that are created alike. -1 partitions or replicas are as many as the brokers' default."""

    name: str
    partitions: int
    replicas: int
    include: tuple[re.Pattern[str], ...] = ()
    exclude: tuple[re.Pattern[str], ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)

    def has(self, topic: str) -> bool:
        """Whether the topic belongs to it."""
        return any(pattern.fullmatch(topic) for pattern in self.include) and not any(
            pattern.fullmatch(topic) for pattern in self.exclude
        )


@dataclass(frozen=True)
class Creation:
    """The groups in their order; the last one is the default, which has every topic."""

    groups: tuple[Group, ...]

    @staticmethod
    def of(config: Config) -> Creation | None:
        """What the connector's properties say; None if they say nothing. Raises ConfigError."""
        given = {
            name.lower().removeprefix(PREFIX): text.strip()
            for name, text in config.given.items()
            if name.lower().startswith(PREFIX)
        }
        given.pop("enable", None)  # of Connect's worker
        if not given:
            return None
        names = split_list(given.pop("groups", ""))
        default = _group(_DEFAULT, given, None)
        return Creation((*(_group(name.lower(), given, default) for name in names), default))

    def group(self, topic: str) -> Group:
        """The first group that has a topic."""
        return next((group for group in self.groups[:-1] if group.has(topic)), self.groups[-1])

    def ensure(self, settings: Settings, topics: Collection[str]) -> None:
        """Create those of the topics that are missing. Raises SinkError."""
        new = [topic for topic in topics if (settings.servers, topic) not in _known]
        if not new:
            return
        from confluent_kafka.admin import NewTopic

        client = state.admin(settings)
        try:
            topics = client.list_topics(timeout=settings.timeout).topics
        except library().KafkaException as error:
            raise refused(error.args[0], "Kafka does not answer", settings.servers) from error
        wanted = [
            NewTopic(topic, group.partitions, group.replicas, config=dict(group.configs))
            for topic in new
            if topic not in topics
            for group in [self.group(topic)]
        ]
        if wanted:
            for topic, done in client.create_topics(wanted, request_timeout=settings.timeout).items():
                _wait(topic, done)
                log.info("topic %s is created as topic.creation.%s says", topic, self.group(topic).name)
        _known.update((settings.servers, topic) for topic in new)


def _wait(topic: str, done: Future[None]) -> None:
    try:
        done.result()
    except library().KafkaException as error:
        if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
            raise refused(error.args[0], "the topic cannot be created", f"topic {topic}") from error


def _group(name: str, given: Mapping[str, str], default: Group | None) -> Group:
    own = {key.removeprefix(f"{name}."): text for key, text in given.items() if key.startswith(f"{name}.")}
    if default is not None and "include" not in own:
        raise ConfigError("no value, and a group needs one", where=f"{PREFIX}{name}.include", remedy="set it")

    def number(key: str, inherited: int | None) -> int:
        text, where = own.pop(key, None), f"{PREFIX}{name}.{key}"
        if text is None and inherited is not None:
            return inherited
        if text is None or not re.fullmatch(r"-1|[1-9]\d*", text):
            raise ConfigError(
                f"is {text}", where=where, remedy="set a number from 1 on, or -1 for the brokers' default"
            )
        return int(text)

    partitions = number("partitions", None if default is None else default.partitions)
    replicas = number("replication.factor", None if default is None else default.replicas)
    include, exclude = (_patterns(own.pop(key, ""), name, key) for key in ("include", "exclude"))
    return Group(name, partitions, replicas, include, exclude, own)


def _patterns(text: str, group: str, key: str) -> tuple[re.Pattern[str], ...]:
    try:
        return tuple(map(compile_pattern, split_list(text)))
    except re.error as error:
        where = f"{PREFIX}{group}.{key}"
        raise ConfigError(f"{text} is no regular expression: {error}", where=where, remedy="correct it") from error
