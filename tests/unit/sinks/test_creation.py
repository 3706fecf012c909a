"""Topics are created as topic.creation.* says, by Kafka Connect's rules for groups."""

from __future__ import annotations

import pytest

from tailrace.connectors.postgres.config import resolve
from tailrace.errors import ConfigError
from tailrace.sinks.kafka.creation import Creation

SERVER = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "shop"}
DEFAULT = {"default.partitions": "3", "default.replication.factor": "-1", "default.cleanup.policy": "compact"}


def creation(**given: str) -> Creation | None:
    properties = {f"topic.creation.{name.replace('__', '.')}": text for name, text in given.items()}
    return Creation.of(resolve({**SERVER, **properties}))


def test_without_properties_the_brokers_decide() -> None:
    assert creation() is None


def test_the_first_group_that_has_a_topic_decides() -> None:
    found = creation(
        **DEFAULT,
        groups="big,logs",
        big__include=r"shop\.public\.(orders|items)",
        big__partitions="12",
        logs__include=".*",
        logs__exclude=r"shop\.public\.users",
        logs__replication__factor="2",
        logs__retention__ms="1000",
    )
    assert found is not None
    seen = {topic: found.group(f"shop.public.{topic}") for topic in ("orders", "log", "users")}
    assert [(one.name, one.partitions, one.replicas, dict(one.configs)) for one in seen.values()] == [
        ("big", 12, -1, {}),
        ("logs", 3, 2, {"retention.ms": "1000"}),
        ("default", 3, -1, {"cleanup.policy": "compact"}),
    ]


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"default.partitions": "1"}, "topic.creation.default.replication.factor"),
        ({**DEFAULT, "default.partitions": "0"}, "topic.creation.default.partitions"),
        ({**DEFAULT, "groups": "a"}, "topic.creation.a.include"),
        ({**DEFAULT, "groups": "a", "a.include": "("}, "topic.creation.a.include"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, str], where: str) -> None:
    with pytest.raises(ConfigError) as failure:
        creation(**given)
    assert failure.value.where == where


def test_ignored_properties_that_change_what_arrives_are_warned_of() -> None:
    given = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead", "errors.log.enable": "true"}
    assert [each.name for each in resolve({**SERVER, **given}).warnings] == list(given)[:2]
    assert resolve({**SERVER, "errors.tolerance": "none"}).warnings == ()
