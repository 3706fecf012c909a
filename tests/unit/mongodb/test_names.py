"""The names of Debezium 1, and addresses whose hosts are in DNS."""

from __future__ import annotations

import pytest
from dns.resolver import NXDOMAIN
from pymongo.errors import ConfigurationError

from tailrace.connectors.mongodb.client import FAILURES, addresses
from tailrace.connectors.mongodb.config import resolve
from tailrace.connectors.mongodb.options import COMPAT_VERSION
from tailrace.connectors.mongodb.url import new_source
from tailrace.errors import ConfigError, SourceError

BASE = {"mongodb.connection.string": "mongodb://h:1/?replicaSet=rs0", "topic.prefix": "p"}


@pytest.mark.parametrize(
    ("old", "value", "name", "today"),
    [
        ("mongodb.hosts", "rs0/a:1,b:2", "mongodb.connection.string", "mongodb://a:1,b:2/?replicaSet=rs0"),
        ("mongodb.hosts", "a:1", "mongodb.connection.string", "mongodb://a:1/"),
        ("mongodb.name", "shop", "topic.prefix", "shop"),
        ("database.whitelist", "a", "database.include.list", "a"),
        ("database.blacklist", "a", "database.exclude.list", "a"),
        ("collection.whitelist", "a.b", "collection.include.list", "a.b"),
        ("collection.blacklist", "a.b", "collection.exclude.list", "a.b"),
        ("field.blacklist", "a.b.c", "field.exclude.list", "a.b.c"),
        ("snapshot.mode", "never", "snapshot.mode", "no_data"),
        ("initial.sync.max.threads", "3", "snapshot.max.threads", "3"),
        ("heartbeat.topics.prefix", "beat", "topic.heartbeat.prefix", "beat"),
        ("capture.mode", "change_streams_with_preimage", "capture.mode", "change_streams_with_pre_image"),
    ],
)
def test_old_names_and_values_work_with_a_warning(old: str, value: str, name: str, today: str) -> None:
    config = resolve({**{key: text for key, text in BASE.items() if key != name}, old: value})
    assert config.given[name] == today
    (warning,) = config.warnings
    assert old in str(warning)
    assert "deprecated" in str(warning)


def test_the_oplog_brings_the_records_of_its_time() -> None:
    assert resolve({**BASE, "capture.mode": "oplog"})[COMPAT_VERSION] == "1.1"
    assert resolve({**BASE, "capture.mode": "oplog", "compat.version": "current"})[COMPAT_VERSION] == "current"


@pytest.mark.parametrize(
    "given",
    [
        {"mongodb.connection.mode": "replica_set"},
        {"mongodb.connection.string.shard.params": "readPreference=secondary"},
        {"capture.mode": "oplog", "cursor.pipeline": "[]"},
    ],
)
def test_what_would_read_otherwise_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=next(reversed(given))):
        resolve({**BASE, **given})


def test_an_address_in_dns_is_taken_without_asking_dns() -> None:
    source = new_source("mongodb+srv://me:secret@cluster0.example.net/shop?retryWrites=true")
    assert source.properties["mongodb.connection.string"] == (
        "mongodb+srv://cluster0.example.net/shop?retryWrites=true"
    )
    assert source.properties["database.include.list"] == "shop"
    config = resolve({**BASE, "mongodb.connection.string": "mongodb+srv://me:secret@cluster0.example.net"})
    assert addresses(config) == "cluster0.example.net"


def test_a_name_that_dns_does_not_know_is_an_error_with_advice() -> None:
    error = ConfigurationError("The DNS query name does not exist: _mongodb._tcp.cluster0.example.net.")
    error.__cause__ = NXDOMAIN()  # type: ignore[no-untyped-call]
    with (
        pytest.raises(SourceError, match="DNS does not say") as caught,
        FAILURES.translated("x"),
    ):
        raise error
    assert "mongodb+srv" in (caught.value.remedy or "")
