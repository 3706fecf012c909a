"""Checks Kafka for `tailrace check`: the brokers, the topics, and the permissions that transactions need."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tailrace.connectors.finding import Finding
from tailrace.errors import SinkError
from tailrace.sinks.kafka import state
from tailrace.sinks.kafka.client import GRANT_WRITE, ROUTE, Settings, library, refused
from tailrace.sinks.kafka.transactions import fence

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

log = logging.getLogger(__name__)

_LEGAL = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
_PATIENCE_MS = 10_000  # guessed


def check(settings: Settings, topics: Collection[str], *, transactions: bool) -> list[Finding]:
    """What prevents a run from writing to these topics, each problem with its remedy; writes no record.

    With `transactions`, a producer with the id `<prefix>check` starts: only this shows whether it is allowed.
    """
    patience = min(_PATIENCE_MS, int(settings.producer["message.timeout.ms"]))
    settings = replace(settings, properties={**settings.properties, "message.timeout.ms": patience})
    brokers = _tried("brokers", lambda: _brokers(settings))
    if not brokers.ok:
        return [brokers]
    findings = [brokers, *_topics(settings, topics)]
    if transactions:
        findings.append(_tried("transactions", lambda: _transactions(settings)))
        findings.append(_tried("state topic", lambda: _state_topic(settings)))
    return findings


def _tried(name: str, look: Callable[[], str]) -> Finding:
    """The result of a query, or the problem that it raises."""
    try:
        return Finding(name, True, look())
    except SinkError as error:
        what = error.what if error.where is None else f"{error.where}: {error.what}"
        return Finding(name, False, what, error.remedy)


def _brokers(settings: Settings) -> str:
    kafka = library()
    try:
        metadata = state.admin(settings).list_topics(timeout=settings.timeout)
    except kafka.KafkaException as error:
        raise refused(error.args[0], "Kafka does not answer", settings.servers) from error
    return f"{settings.servers} answers, brokers: {len(metadata.brokers)}"


def _topics(settings: Settings, topics: Collection[str]) -> Iterator[Finding]:
    """A finding for each topic that cannot be written, and one for all others."""
    admin, fine, missing = state.admin(settings), 0, []
    for topic in sorted(topics):
        if not _LEGAL.fullmatch(topic):
            yield Finding("topics", False, f"Kafka does not allow the name {topic!r}", ROUTE)
            continue
        try:
            operations = state.allowed(settings, admin, topic)
        except library().KafkaException as error:
            yield _refused(error.args[0], topic, settings)
            continue
        if operations is None:
            missing.append(topic)
        elif "WRITE" not in operations:
            yield Finding("topics", False, f"the producer's user may not write to {topic}", GRANT_WRITE)
        else:
            fine += 1
    if fine:
        yield Finding("topics", True, f"{fine} can be written")
    if missing:
        what = f"not there yet: {', '.join(missing)}; the first record creates them if auto.create.topics.enable is set"
        yield Finding("topics", True, what)


def _refused(error: KafkaError, topic: str, settings: Settings) -> Finding:
    failure = refused(error, "the topic cannot be looked at", f"topic {topic} at {settings.servers}")
    return Finding("topics", False, f"{failure.where}: {failure.what}", failure.remedy)


def _transactions(settings: Settings) -> str:
    fence(settings, f"{settings.prefix}check")
    return f"transactional ids that begin with {settings.prefix} can be used"


def _state_topic(settings: Settings) -> str:
    admin = state.admin(settings)
    return f"{settings.state_topic} can be used" if state.exists(settings, admin) else "will be created"
