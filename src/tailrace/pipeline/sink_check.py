"""Checks a pipeline's sink for `tailrace check`: whether Kafka can be written in the way the pipeline will."""

from __future__ import annotations

from tailrace.config.filters import TableFilter
from tailrace.connectors.finding import Finding
from tailrace.connectors.ports import Admin
from tailrace.errors import SourceError
from tailrace.events.topics import TopicNaming
from tailrace.pipeline.definition import Definition, KafkaTarget
from tailrace.sinks.kafka import preflight
from tailrace.sinks.kafka.client import Settings
from tailrace.transforms import parse, renamed_by


def check(definition: Definition, admin: Admin) -> list[Finding]:
    """The sink's problems, each with its remedy; writes nothing. Other sinks than Kafka have no finding."""
    target = definition.sink.target
    if not isinstance(target, KafkaTarget):
        return []
    properties = {**target.properties, "bootstrap.servers": target.bootstrap_servers}
    settings = Settings(properties, target.transactional_id_prefix, target.state_topic)
    return preflight.check(settings, _topics(definition, admin), transactions=target.delivery == "exactly-once")


def _topics(definition: Definition, admin: Admin) -> set[str]:
    """The topics of the captured tables. Transforms may name others, which nobody knows before there are records."""
    config = definition.config()
    if config.names("transforms"):
        return set()
    try:
        there = [table.id for table in admin.overview()]
    except SourceError:  # the check of the database says why
        return set()
    captures, naming = TableFilter.from_config(config).captures, TopicNaming(config)
    steps = parse(definition.steps_text())
    return {renamed_by(steps, naming.table(table)) for table in there if captures(table)}
