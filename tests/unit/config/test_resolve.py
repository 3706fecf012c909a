"""Resolving: Debezium's messages, aliases, warnings, secrets and the whole of a configuration's problems at once."""

from __future__ import annotations

import logging
import pickle

import pytest

from tailrace.config import Config
from tailrace.config import resolve as resolution
from tailrace.config.filters import tables_of_signals
from tailrace.config.kinds import COUNT
from tailrace.config.option import Option
from tailrace.config.options.databases import DATABASE_PORT, SNAPSHOT_FETCH_SIZE
from tailrace.config.options.filters import MESSAGE_KEY_COLUMNS, SKIPPED_OPERATIONS, TABLES, TOMBSTONES_ON_DELETE
from tailrace.config.options.snapshot import HEARTBEAT_INTERVAL_MS
from tailrace.config.options.spark import MAX_BYTES_PER_TRIGGER, SHAPE
from tailrace.connectors.db2.config import resolve as resolve_db2
from tailrace.connectors.mongodb.config import resolve as resolve_mongodb
from tailrace.connectors.mongodb.options import CURSOR_PIPELINE
from tailrace.connectors.postgres.config import resolve
from tailrace.connectors.postgres.options import (
    DATABASE_SSLCERT,
    OPTIONS,
    PUBLICATION_AUTOCREATE_MODE,
    SLOT_NAME,
)
from tailrace.connectors.sqlserver.config import resolve as resolve_sqlserver
from tailrace.errors import ConfigError

BASE = {
    "database.hostname": "h",
    "database.user": "u",
    "database.password": "s3cret",
    "database.dbname": "d",
    "topic.prefix": "server1",
}
ADDRESS = "has invalid format (only the underscore, hyphen, dot and alphanumeric characters are allowed)"


@pytest.fixture(autouse=True)
def _afresh() -> None:
    resolution._said.clear()


def resolved(**properties: str) -> Config:
    return resolve({**BASE, **{name.replace("__", "."): value for name, value in properties.items()}})


def test_defaults_are_debeziums() -> None:
    config = resolved()
    assert config[DATABASE_PORT] == 5432
    assert config[SLOT_NAME] == "debezium"
    assert config[PUBLICATION_AUTOCREATE_MODE] == "all_tables"
    assert config[TOMBSTONES_ON_DELETE] is True
    assert config[SKIPPED_OPERATIONS] == ("t",)
    assert config[TABLES.include] == ()
    assert config[MESSAGE_KEY_COLUMNS] == ()
    assert config[SHAPE] == "kafka"
    assert config[MAX_BYTES_PER_TRIGGER] == 256 * 2**20
    assert config.warnings == ()


def test_every_declaration_holds_together() -> None:
    names = [option.name.lower() for option in OPTIONS] + [a.name.lower() for o in OPTIONS for a in o.aliases]
    assert len(names) == len(set(names))
    for option in OPTIONS:
        assert option.help.endswith("."), option.name
        assert option.excluded_by is None or OPTIONS.find(option.excluded_by), option.name
        if option.default is not None:
            option.kind.parse(option.default)
        for today in option.old_values.values():
            option.kind.parse(today)
        for alias in option.aliases:
            for today in alias.values.values():
                option.kind.parse(today)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("topic.prefix", "a b", f"topic.prefix: a b {ADDRESS}"),
        ("topic.prefix", " ", "topic.prefix: A value is required"),
        ("database.hostname", "h,i", f"database.hostname: h,i {ADDRESS}"),
        ("topic.transaction", "tx ü", f"topic.transaction: tx ü {ADDRESS}"),
        ("topic.heartbeat.prefix", "a b", f"topic.heartbeat.prefix: a b {ADDRESS}"),
        ("topic.heartbeat.name", "a b", f"topic.heartbeat.name: a b {ADDRESS}"),
        ("tombstones.on.delete", "yes", "tombstones.on.delete: Either 'true' or 'false' is expected"),
        ("database.port", "0", "database.port: A positive, non-zero integer value is expected"),
        ("database.port", "99999", "database.port: A port is expected, a number up to 65535"),
        ("slot.max.retries", "-1", "slot.max.retries: An non-negative integer is expected"),
        ("errors.max.retries", "1.5", "errors.max.retries: An integer is expected"),
        ("errors.max.retries", "2147483648", "errors.max.retries: An integer is expected"),
        ("decimal.handling.mode", "x", "decimal.handling.mode: Value must be one of precise, double, string"),
        ("slot.name", "Big", "Valid replication slot name must contain only digits, lowercase characters and unders"),
        ("slot.name", "a" * 64, "with length <= 63"),
        ("table.include.list", "a(", "A comma-separated list of valid regular expressions is expected, but missing )"),
        ("message.key.columns", "", "message.key.columns: Must not be empty"),
        ("message.key.columns", "a.b", "a.b has an invalid format (expecting '^\\s*([^:]+):([^:,]+(,[^:,]+)*)\\s*$')"),
        ("skipped.operations", "x", "skipped.operations: Invalid operation"),
        ("skipped.operations", "none,r", "'none' cannot be specified with other skipped operation types"),
        ("skipped.operations", "none,t", "'none' cannot be specified with other skipped operation types"),
        ("max.queue.size", "0", "max.queue.size: A positive queue size is required"),
        ("max.queue.size", "100", "max.queue.size: Must be larger than the maximum batch size"),
        ("plugin.name", "wal2json", "set plugin.name=pgoutput"),
        ("plugin.name", "decoderbufs", "set plugin.name=pgoutput"),
        ("snapshot.mode", "custom", "snapshot.mode.custom.name: A value is required"),
        (
            "key.converter",
            "com.example.Mine",
            "Value must be one of org.apache.kafka.connect.json.JsonConverter, io.confluent",
        ),
        ("header.converter", "io.confluent.connect.avro.AvroConverter", "SimpleHeaderConverter, org.apache.kafka"),
        ("exactly.once.support", "required", "set requested"),
        ("database.ssl", "true", "set database.sslmode=verify-full"),
        ("database.sslfactory", "org.postgresql.ssl.DefaultJavaSSLFactory", "set database.sslmode=verify-full"),
        ("sourceinfo.struct.maker", "com.example.Mine", "Java classes cannot be loaded"),
        ("transaction.metadata.factory", "com.example.Mine", "Java classes cannot be loaded"),
        ("internal.custom.retriable.exception", "(", "A valid regular expression is expected"),
        ("maxBytesPerTrigger", "0", "maxBytesPerTrigger: A positive number of bytes is expected"),
        ("connector.class", "io.debezium.connector.mysql.MySqlConnector", "connector.class: Value must be one of"),
        ("value.converter", "io.confluent.connect.avro.AvroConverter", "converter.schema.registry.url: A value"),
        ("key.converter", "io.apicurio.registry.utils.converter.AvroConverter", "apicurio.registry.url: A value"),
        ("database.connection.factory.class", "a.B", "Java classes cannot be loaded"),
        ("signal.data.collection", "a.b,c.d", "only one signal data collection is permitted"),
        ("notification.enabled.channels", "sink", "Notification topic name must be provided"),
        ("column.mask.hash.ROT13.with.salt.s", "a.b.c", "ROT13 is no hash algorithm"),
    ],
)
def test_a_faulty_value_is_refused(name: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve({**BASE, name: value})
    assert message in str(caught.value)


def test_each_database_of_a_server_may_have_a_table_of_signals() -> None:
    given = {"database.hostname": "h", "database.names": "a,b", "topic.prefix": "t"}
    config = resolve_sqlserver({**given, "signal.data.collection": "a.dbo.s,b.dbo.s"})
    assert [str(table) for table in tables_of_signals(config)] == ["a.dbo.s", "b.dbo.s"]


@pytest.mark.parametrize("option", [SNAPSHOT_FETCH_SIZE, Option("query.fetch.size", COUNT, "0")])
def test_a_fetch_size_of_zero_is_the_drivers_own(option: Option[int]) -> None:
    """CommonConnectorConfig: isNonNegativeInteger."""
    given = {"database.hostname": "h", "topic.prefix": "t", option.name: "0"}
    assert resolve_sqlserver({**given, "database.names": "a"})[option] == 0
    assert resolve_db2({**given, "database.dbname": "a"})[option] == 0
    assert resolve({**BASE, option.name: "0"})[option] == 0


@pytest.mark.parametrize("kind", ["schema", "table", "column", "message.prefix"])
def test_include_and_exclude_exclude_each_other(kind: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve({**BASE, f"{kind}.include.list": "a", f"{kind}.exclude.list": "b"})
    assert f'{kind}.exclude.list: "{kind}.include.list" is already specified' in str(caught.value)


def test_all_problems_are_in_one_error() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve({"slot.name": "X", "database.port": "y"})
    text = str(caught.value)
    assert text.startswith("6 properties are wrong")
    for name in ("slot.name", "database.port", "database.hostname", "database.user", "database.dbname", "topic.prefix"):
        assert f"- {name}: " in text


@pytest.mark.parametrize(
    ("old", "value", "name", "today"),
    [
        ("database.server.name", "old", "topic.prefix", "old"),
        ("table.whitelist", "a.b", "table.include.list", "a.b"),
        ("column.blacklist", "a.b.c", "column.exclude.list", "a.b.c"),
        ("truncate.handling.mode", "include", "skipped.operations", "none"),
        ("truncate.handling.mode", "skip", "skipped.operations", "t"),
        ("toasted.value.placeholder", "x", "unavailable.value.placeholder", "x"),
        ("sanitize.field.names", "true", "field.name.adjustment.mode", "avro"),
        ("snapshot.mode", "never", "snapshot.mode", "no_data"),
        ("snapshot.mode", "exported", "snapshot.mode", "initial"),
        ("snapshot.mode", "schema_only", "snapshot.mode", "no_data"),
    ],
)
def test_old_names_and_values_work_with_a_warning(old: str, value: str, name: str, today: str) -> None:
    given = {key: text for key, text in BASE.items() if key != name}
    config = resolve({**given, old: value})
    assert config.given[name] == today
    (warning,) = config.warnings
    assert str(warning).startswith(f"{old}: deprecated")


@pytest.mark.parametrize("order", [1, -1])
def test_todays_name_wins_over_the_old_one(order: int) -> None:
    both = [("table.whitelist", "old"), ("table.include.list", "new")][::order]
    assert resolve({**BASE, **dict(both)}).given["table.include.list"] == "new"


def test_none_skips_nothing() -> None:
    assert resolved(skipped__operations="none")[SKIPPED_OPERATIONS] == ()
    assert resolved(skipped__operations="r")[SKIPPED_OPERATIONS] == ()
    assert resolved(skipped__operations="c, r")[SKIPPED_OPERATIONS] == ("c",)


@pytest.mark.parametrize(
    ("given", "interval"),
    [
        ({}, 600_000),
        ({"heartbeat.interval.ms": "0"}, 600_000),
        ({"heartbeat.interval.ms": "100"}, 100),
        ({"provide.transaction.metadata": "true"}, 0),
    ],
)
def test_the_driver_confirms_by_heartbeats(given: dict[str, str], interval: int) -> None:
    assert resolve({**BASE, **given, "lsn.flush.mode": "connector_and_driver"})[HEARTBEAT_INTERVAL_MS] == interval
    assert resolve({**BASE, **given})[HEARTBEAT_INTERVAL_MS] == int(given.get("heartbeat.interval.ms", 0))


def test_values_that_have_no_effect_are_accepted_as_by_the_reference() -> None:
    assert resolved(snapshot__fetch__size="0")[SNAPSHOT_FETCH_SIZE] == 0


def test_names_are_found_in_any_case() -> None:
    config = resolve({name.upper(): value for name, value in BASE.items()} | {"maxbytespertrigger": "64m"})
    assert config.given["database.hostname"] == "h"
    assert config[MAX_BYTES_PER_TRIGGER] == 64 * 2**20


def test_an_unknown_property_is_named_once_with_its_neighbour(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            resolution.log_warnings(resolve({**BASE, "heartbeat.intervall.ms": "1"}))
    assert caplog.messages == [
        "heartbeat.intervall.ms: unknown property, ignored (did you mean heartbeat.interval.ms?)"
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("tabel.include.list", "table.include.list"),
        ("table.inclde.list", "table.include.list"),
        ("table.include", "table.include.list"),
        ("table.excludes.list", "table.exclude.list"),
        ("TABLE.EXLUDE.LIST", "table.exclude.list"),
        ("table.whitelst", "table.include.list"),
        ("schemas.include.list", "schema.include.list"),
        ("column.exlude.list", "column.exclude.list"),
        ("column.blaklist", "column.exclude.list"),
        ("mesage.prefix.exclude.list", "message.prefix.exclude.list"),
        ("message.key.colums", "message.key.columns"),
        ("skiped.operations", "skipped.operations"),
        ("snapshot.include.collections.list", "snapshot.include.collection.list"),
        ("snapshot.select.statement.override", "snapshot.select.statement.overrides"),
        ("snapshot.select.statment.overrides.public.a", "snapshot.select.statement.overrides.<table>"),
        ("transfroms", "transforms"),
        ("predicate", "predicates"),
        ("convertors", "converters"),
        ("custom.sanitise.pattern", "custom.sanitize.pattern"),
        ("column.mask.wth.3.chars", "column.mask.with.<n>.chars"),
        ("colum.mask.with.3.chars", "column.mask.with.<n>.chars"),
        ("column.mask.with.3.char", "column.mask.with.<n>.chars"),
        ("column.truncat.to.20.chars", "column.truncate.to.<n>.chars"),
        ("column.truncate.20.chars", "column.truncate.to.<n>.chars"),
        ("column.mask.hsh.SHA-256.with.salt.s3cret", "column.mask.hash.<alg>.with.salt.<salt>"),
        ("column.mask.hash.v2.SHA-256.with.slt.s3cret", "column.mask.hash.<alg>.with.salt.<salt>"),
        ("column.hash.SHA-256.with.salt.s3cret", "column.mask.hash.<alg>.with.salt.<salt>"),
        ("database.sslmdoe", "database.sslmode"),
        ("database.ssl.mode", "database.sslmode"),
    ],
)
def test_a_name_near_one_that_selects_or_hides_is_an_error(name: str, meant: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve({**BASE, name: "a"})
    said = str(caught.value)
    assert said.startswith(name[:12])
    assert f"did you mean {meant}" in said
    assert "s3cret" not in said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("collection.include.list", "MongoDB's connector (here it is table.include.list; "),
        ("collection.whitelist", "MongoDB's connector (here it is table.include.list; "),
        ("field.exclude.list", "MongoDB's connector (here it is column.exclude.list; "),
    ],
)
def test_a_filter_of_another_connector_is_an_error_that_names_the_one_here(name: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve({**BASE, name: "a"})
    assert str(caught.value) == f"{name}: is a property of {said}what selects or hides data is never ignored)"


def test_another_connectors_property_is_reported_as_such() -> None:
    assert [str(warning) for warning in resolve({**BASE, "max.iteration.transactions": "1"}).warnings] == [
        "max.iteration.transactions: is a property of SQL Server's connector, ignored (remove it)"
    ]
    mongodb = {"mongodb.connection.string": "mongodb://h", "topic.prefix": "t"}
    with pytest.raises(ConfigError) as caught:
        resolve_mongodb({**mongodb, "table.include.list": "a"})
    assert "the connectors for PostgreSQL, SQL Server and Db2 (here it is collection.include.list; " in str(
        caught.value
    )
    salted = resolve_mongodb({**mongodb, "column.mask.hash.MD5.with.salt.s3cret": "a"})
    assert "s3cret" not in str(salted.warnings[-1])


@pytest.mark.parametrize(
    "name",
    [
        *(
            "foo",
            "column.propagate.sorce.types",
            "table.statistics",
            "snapshot.delay",
            "slot.nam",
            "signal.data.colection",
        ),
        *("topic.prefx", "database.gssEncMode", "database.sslNegotiation", "database.sslpasswordcallback"),
        *(
            "database.sslhostnameverifier",
            "database.sslfactoryarg",
            "database.sslResponseTimeout",
            "database.include.list",
        ),
    ],
)
def test_other_unknown_names_are_no_error(name: str) -> None:
    resolve({**BASE, name: "a"})


def test_properties_without_effect_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        config = resolve({**BASE, "custom.metric.tags": "a=b"})
    assert config.warnings == ()
    assert caplog.messages[0].startswith("custom.metric.tags: has no effect, there are no JMX metrics")


def test_settings_of_connect_are_accepted_quietly(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        config = resolve({**BASE, "tasks.max": "1", "offset.flush.interval.ms": "1", "database.tcpNoDelay": "true"})
    assert config.warnings == ()
    assert [message.split(":")[0] for message in caplog.messages] == [
        "tasks.max",
        "offset.flush.interval.ms",
        "database.tcpNoDelay",
    ]


def test_the_most_specific_family_is_meant() -> None:
    found = OPTIONS.find("database.history.kafka.topic")
    assert found is not None
    assert found[0].name == "database.history.*"


def test_a_regex_strategy_needs_its_expression() -> None:
    with pytest.raises(ConfigError, match=r"topic\.replacement: A value is required"):
        resolve(
            {**BASE, "topic.naming.strategy": "io.debezium.schema.DefaultRegexTopicNamingStrategy", "topic.regex": "a"}
        )


def test_a_config_travels() -> None:
    config = resolved(table__include__list="a.b", message__key__columns="a.b:c")
    assert pickle.loads(pickle.dumps(config)) == config


def test_the_wrong_question_is_an_error() -> None:
    config = resolved()
    with pytest.raises(KeyError):
        config[CURSOR_PIPELINE]
    with pytest.raises(TypeError, match=r"database\.sslcert has no value"):
        config.need(DATABASE_SSLCERT)


@pytest.mark.parametrize("host", ["a" * 64, "a..b", ".a", f"{'a' * 63}.{'b' * 64}"])
def test_a_name_that_no_resolver_takes_is_no_host(host: str) -> None:
    with pytest.raises(
        ConfigError, match=r"database\.hostname: .* is no host: each of its parts has 1 to 63 characters"
    ):
        resolve({**BASE, "database.hostname": host})
    assert resolve({**BASE, "database.hostname": f"{'a' * 63}.b."})


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("column.mask.with.x.chars", "column.mask.with.<n>.chars"),
        ("column.mask.with.-1.chars", "column.mask.with.<n>.chars"),
        ("column.truncate.to.many.chars", "column.truncate.to.<n>.chars"),
    ],
)
def test_a_mask_that_masks_nothing_is_an_error(name: str, form: str) -> None:
    with pytest.raises(ConfigError, match="so that nothing would be masked") as caught:
        resolve({**BASE, name: "public.t.secret"})
    assert name in str(caught.value)
    assert form in str(caught.value)
