"""A configuration of Debezium 3.7 starts: its new properties are taken, or one sentence says what to write instead."""

from __future__ import annotations

import pytest

from tailrace.config.kinds import InvalidValue
from tailrace.config.option import OptionStatus
from tailrace.connectors.registry import BUILT_IN, imported

TAKEN = [
    "offset.activity.monitor.interval.ms",
    "poll.dispatch.interval.ms",
    "schema.history.internal.memory.optimization",
    "signal.emit.failure.max.retries",
    "signal.emit.failure.backoff.ms",
    "signal.processor.semaphore.wait.ms",
    "signal.synchronous.batch.size",
    "notification.http.url",
    "notification.http.allow.private.networks",
    "r.reselect.cache.enabled",
    "r.reselect.cache.ttl.ms",
]


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("connector", BUILT_IN)
def test_no_name_is_unknown_and_what_has_no_effect_says_why(connector: str, name: str) -> None:
    found = imported(BUILT_IN[connector].options or "").find(name)
    assert found is not None
    assert found[0].status is not OptionStatus.CONNECT or found[0].note


@pytest.mark.parametrize(
    ("connector", "name"),
    [
        ("mongodb", "capture.mode.pre.image"),
        ("mongodb", "capture.mode.full.update.type"),
        ("mongodb", "json.serialization.mode"),
        ("sqlserver", "internal.capture.instance.include.list"),
        ("sqlserver", "internal.capture.instance.exclude.list"),
    ],
)
def test_those_of_one_connector_work(connector: str, name: str) -> None:
    found = imported(BUILT_IN[connector].options or "").find(name)
    assert found is not None
    assert found[0].status is OptionStatus.WORKS


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("notification.enabled.channels", "jmx", "use sink, log, file, callback or http"),
    ],
)
@pytest.mark.parametrize("connector", BUILT_IN)
def test_what_does_not_work_is_told_with_what_does(connector: str, name: str, value: str, said: str) -> None:
    found = imported(BUILT_IN[connector].options or "").find(name)
    if found is None:
        assert (connector, name) == ("mongodb", "time.precision.mode")  # which the reference's has not either
        return
    with pytest.raises(InvalidValue) as caught:
        found[0].kind.parse(value)
    assert said in (caught.value.remedy or "")
