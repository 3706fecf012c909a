"""`tailrace check` of a pipeline into Kafka: what a run could not write is a problem before the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, ResourceType

from tailrace.connectors.finding import Finding
from tailrace.connectors.postgres.config import resolve
from tailrace.pipeline import sink_check
from tailrace.pipeline.definition import load
from tailrace.sinks.kafka import preflight, state
from tailrace.sinks.kafka.creation import Creation
from tailrace.testing.kafka import EmbeddedKafka
from tests.behaviour.kafka_topics import denied
from tests.behaviour.test_cli import tailrace, written
from tests.behaviour.test_kafka_transactions import Case
from tests.conftest import Database

SERVER = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "shop"}


@pytest.fixture
def case(kafka: EmbeddedKafka) -> Case:
    return Case(kafka)


def looked(case: Case, *topics: str, transactions: bool = True) -> list[Finding]:
    return preflight.check(case.settings, {case.topic, *topics}, transactions=transactions)


def problem(findings: list[Finding]) -> Finding:
    """The only one."""
    (found,) = (finding for finding in findings if finding.ok is False)
    return found


def test_nothing_is_wrong_and_nothing_is_made(case: Case) -> None:
    findings = looked(case, "not-there")
    assert {finding.ok for finding in findings} == {True}
    assert [finding.name for finding in findings] == ["brokers", "topics", "topics", "transactions", "state topic"]
    assert "not-there" in findings[2].what
    there = AdminClient({"bootstrap.servers": case.kafka.bootstrap}).list_topics(timeout=30).topics
    assert not {"not-there", case.settings.state_topic} & set(there)
    state.prepare(case.settings)
    assert {finding.ok for finding in looked(case)} == {True}


@pytest.mark.parametrize("name", ["no/topic", ".", "x" * 250, "M\u00fcller"])
def test_a_name_that_kafka_does_not_allow(case: Case, name: str) -> None:
    found = problem(looked(case, name))
    assert name in found.what
    assert "route" in str(found.remedy)


@pytest.mark.parametrize("operation", [AclOperation.ALL, AclOperation.WRITE], ids=str)
def test_a_topic_without_rights(case: Case, operation: AclOperation) -> None:
    with denied(case.kafka, ResourceType.TOPIC, case.topic, operation):
        found = problem(looked(case))
    assert case.topic in found.what
    assert "kafka-acls.sh" in str(found.remedy)


def test_transactional_ids_without_rights(case: Case) -> None:
    with denied(case.kafka, ResourceType.TRANSACTIONAL_ID, "tailrace-check", AclOperation.WRITE):
        found = problem(looked(case))
        assert {finding.ok for finding in looked(case, transactions=False)} == {True}
    assert "tailrace-check" in found.what
    assert "--transactional-id" in str(found.remedy)


@pytest.mark.parametrize("operation", [AclOperation.READ, AclOperation.WRITE], ids=str)
def test_a_state_topic_without_rights(case: Case, operation: AclOperation) -> None:
    state.prepare(case.settings)
    with denied(case.kafka, ResourceType.TOPIC, case.settings.state_topic, operation):
        found = problem(looked(case))
    assert case.settings.state_topic in found.what
    assert "kafka-acls.sh" in str(found.remedy)


@pytest.mark.long
def test_brokers_out_of_reach_and_settings_that_are_wrong(kafka: EmbeddedKafka) -> None:
    far = Case(kafka, **{"message.timeout.ms": 1500, "bootstrap.servers": "127.0.0.1:9"})
    assert "127.0.0.1:9" in problem(looked(far)).what
    assert "linger.mss" in problem(looked(Case(kafka, **{"linger.mss": 5}))).what
    assert "transaction.max.timeout.ms" in str(
        problem(looked(Case(kafka, **{"transaction.timeout.ms": 1_000_000}))).remedy
    )


def test_topics_are_those_that_the_steps_name(kafka: EmbeddedKafka, database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    sink: dict[str, Any] = {"kafka": {"bootstrap.servers": kafka.bootstrap}}
    route = {"route": {"regex": r"shop\.public\.(.*)", "replacement": "no/$1"}}
    file = written(tmp_path, database, sink, steps=[route])
    definition = load(file)
    assert "no/orders" in problem(sink_check.check(definition, definition.admin())).what
    assert "problem topics: Kafka does not allow the name 'no/orders'" in tailrace("check", file, code=1).stdout


def test_topics_are_created_as_configured(case: Case) -> None:
    given = {"topic.creation.default.partitions": "3", "topic.creation.default.replication.factor": "1"}
    config = resolve({**SERVER, **given, "topic.creation.default.cleanup.policy": "compact"})
    creation, name = Creation.of(config), f"{case.topic}-made"
    assert creation is not None
    for _ in range(2):
        creation.ensure(case.settings, [name, case.topic])
    admin = AdminClient({"bootstrap.servers": case.kafka.bootstrap})
    topics = admin.list_topics(timeout=30).topics
    assert len(topics[name].partitions) == 3
    assert len(topics[case.topic].partitions) == 1, "one that was there is left as it is"
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    assert admin.describe_configs([resource])[resource].result()["cleanup.policy"].value == "compact"
