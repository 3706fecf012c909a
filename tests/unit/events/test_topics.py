"""Topic, schema and field names."""

import logging

import pytest

from tailrace.config.topics import TopicNaming, adjusted, sanitised
from tailrace.connectors.mongodb.documents import table_of
from tailrace.connectors.mongodb.position import BLOCK
from tailrace.connectors.postgres.position import SOURCE
from tailrace.errors import ConfigError
from tailrace.events.envelope import envelope
from tailrace.model.schema import ConnectSchema
from tailrace.model.table import Column, TableSchema
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE, DATABASE_TABLE, TableId
from tests.unit.events.changes import COLUMNS, changes, encoded, table
from tests.unit.events.event_recordings import config, configured


@pytest.mark.parametrize(
    ("name", "mode", "dots", "result"),
    [
        ("server-1.my-schema.2nd", "none", True, "server-1.my-schema.2nd"),
        ("server-1.my-schema.2nd", "avro", True, "server_1.my_schema.2nd"),
        ("1a-b.c d", "avro", True, "_1a_b.c_d"),
        ("a.b", "avro", False, "a_b"),
        ("1st col", "avro_unicode", False, "_u0031st_u0020col"),
        ("__ok", "avro_unicode", False, "_u005f_u005fok"),
        ("a.b", "avro_unicode", False, "a_u002eb"),
        ("é", "avro", False, "_"),
    ],
)
def test_adjustment(name: str, mode: str, dots: bool, result: str) -> None:
    assert adjusted(name, mode, dots=dots) == result


def test_sanitising() -> None:
    assert sanitised("a.Straße 1") == "a.Stra_e_1"
    assert sanitised("a.Straße 1", unicode=True) == "a.Stra_u00dfe_u00201"
    assert sanitised("snow_\U0001f600", unicode=True) == "snow_u005f_ud83d_ude00"
    assert (sanitised("."), sanitised(".."), len(sanitised("x" * 300))) == ("_", "__", 249)


def test_a_changed_name_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    naming = TopicNaming(config())
    with caplog.at_level(logging.WARNING, logger="tailrace.config.topics"):
        assert {naming.table(TableId("d", "public", "a b")) for _ in range(3)} == {"server1.public.a_b"}
        assert len(caplog.records) == 1
        naming.table(TableId("d", "public", "a_b"))
    assert "share the topic" in caplog.text


def test_two_columns_of_one_field_name() -> None:
    columns = (*COLUMNS, Column("a-b", ConnectSchema("string"), COLUMNS[1].arrow), Column("a.b", *_text()))
    table = TableSchema(TableId("d", "public", "t"), columns, (), ())
    with pytest.raises(ConfigError, match="both become the field 'a_b'"):
        envelope(table, TopicNaming(config(field_name_adjustment_mode="avro")), SOURCE)


@pytest.mark.parametrize(
    ("table", "strategy", "topic"),
    [
        (TableId("d", "s", "t"), "Schema", "server1.s.t"),
        (TableId("d", "s", "t"), "Default", "server1.t"),
        (TableId("testdb", "dbo", "t", DATABASE_SCHEMA_TABLE), "Schema", "server1.testdb.dbo.t"),
        (TableId("testdb", "dbo", "t", DATABASE_SCHEMA_TABLE), "Default", "server1.testdb.t"),
        (TableId("inventory", "", "a.b", DATABASE_TABLE), "Schema", "server1.inventory.a.b"),
        (TableId("inventory", "", "a.b", DATABASE_TABLE), "Default", "server1.inventory.a.b"),
    ],
)
def test_a_topic_has_the_parts_that_distinguish_tables(table: TableId, strategy: str, topic: str) -> None:
    naming = TopicNaming(config(topic_naming_strategy=f"io.debezium.schema.{strategy}TopicNamingStrategy"))
    assert naming.table(table) == topic


def test_the_schema_regex_strategy() -> None:
    strategy = "io.debezium.schema.SchemaRegexTopicNamingStrategy"
    naming = TopicNaming(
        config(topic_naming_strategy=strategy, topic_regex="(?<all>.*)shard_.*", topic_replacement="${all}shards")
    )
    assert naming.table(TableId("d", "public", "shard_1")) == "server1.public.shards"
    assert naming.table(TableId("d", "public", "SHARD_1")) == "server1.public.SHARD_1"
    assert naming.key_field(TableId("d", "public", "shard_1")) == (
        "__dbz__physicalTableIdentifier",
        "server1.public.shard_1",
    )


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, ("__dbz__physicalTableIdentifier", "server1.shard_1")),
        ({"topic_key_enforce_uniqueness": "false"}, None),
        ({"topic_key_field_name": "origin"}, ("origin", "server1.shard_1")),
        (
            {"topic_key_field_regex": r".*\.(.*)", "topic_key_field_replacement": "t_$1"},
            ("__dbz__physicalTableIdentifier", "t_shard_1"),
        ),
        (
            {"topic_key_field_regex": "other", "topic_key_field_replacement": "x"},
            ("__dbz__physicalTableIdentifier", "server1.shard_1"),
        ),
    ],
)
def test_the_field_that_regex_strategies_add_to_keys(options: dict[str, str], field: tuple[str, str] | None) -> None:
    strategy = "io.debezium.schema.DefaultRegexTopicNamingStrategy"
    given = {"topic_naming_strategy": strategy, "topic_regex": ".*", "topic_replacement": "all", **options}
    assert TopicNaming(config(**given)).key_field(TableId("d", "public", "shard_1")) == field


@pytest.mark.parametrize(("faults", "fields"), [("false", ["id", "__dbz__physicalTableIdentifier"]), ("true", ["id"])])
def test_the_keys_of_documents_have_that_field_too_but_in_the_reference(faults: str, fields: list[str]) -> None:
    strategy = "io.debezium.schema.DefaultRegexTopicNamingStrategy"
    given = {"topic_naming_strategy": strategy, "topic_regex": ".*", "topic_replacement": "all"}
    table = table_of(TableId("shop", "", "orders", DATABASE_TABLE), [])
    made = envelope(table, TopicNaming(config(compat_faults=faults, **given)), BLOCK)
    assert made.key is not None
    assert [field.name for field in made.key.fields] == fields
    assert made.key_extra == (None if faults == "true" else "server1.shop.orders")


@pytest.mark.parametrize(
    ("replacement", "topic"),
    [
        (r"\$1-$1", "$1-server1.public."),
        (r"a\\b", r"a\b"),
        ("$13", "server1.public.3"),
        ("${n}x", "7x"),
        ("", "server1.public.shard_7"),
    ],
)
def test_replacements_are_read_as_java_reads_them(replacement: str, topic: str) -> None:
    given = {"topic_regex": r"(.*)shard_(?<n>\d)", "topic_replacement": replacement}
    strategy = "io.debezium.schema.SchemaRegexTopicNamingStrategy"
    if not replacement:
        with pytest.raises(ConfigError, match=r"topic\.replacement: A value is required"):
            config(topic_naming_strategy=strategy, **given)
        return
    assert (
        TopicNaming(config(topic_naming_strategy=strategy, **given)).table(TableId("d", "public", "shard_7")) == topic
    )


@pytest.mark.parametrize("replacement", ["$", "$3", "${m}"])
def test_a_faulty_replacement_is_refused(replacement: str) -> None:
    strategy = "io.debezium.schema.SchemaRegexTopicNamingStrategy"
    given = {"topic_regex": r"(.*)shard_(?<n>\d)", "topic_replacement": replacement}
    with pytest.raises(ConfigError, match=r"topic\.replacement: replacement "):
        TopicNaming(config(topic_naming_strategy=strategy, **given))


@pytest.mark.parametrize("mode", ["none", "avro", "avro_unicode"])
def test_names_of_schemas_are_adjusted_and_topics_are_not(mode: str) -> None:
    naming = TopicNaming(configured({"topic.prefix": "a-b", "schema.name.adjustment.mode": mode}))
    made = envelope(TableSchema(TableId("d", "public", "t"), COLUMNS, ("id",), ()), naming, SOURCE)
    prefix = {"none": "a-b", "avro": "a_b", "avro_unicode": "a_u002db"}[mode]
    assert made.topic == "a-b.public.t"
    assert made.key is not None
    assert [made.key.name, made.value.name] == [f"{prefix}.public.t.Key", f"{prefix}.public.t.Envelope"]


def _text() -> tuple[ConnectSchema, object]:
    return COLUMNS[1].schema, COLUMNS[1].arrow


def test_a_table_without_a_key_has_the_tables_name_as_one_only_with_faults() -> None:
    given = {
        "topic_naming_strategy": "io.debezium.schema.DefaultRegexTopicNamingStrategy",
        "topic_regex": "(.*)",
        "topic_replacement": "all",
    }
    for faults, expected in (("false", None), ("true", '{"__dbz__physicalTableIdentifier":"server1.things"}')):
        (row,) = encoded(
            changes(table(key=()), {"op": "c", "after": {"id": 1, "code": "a"}}), compat_faults=faults, **given
        )
        assert row["key"] == expected
