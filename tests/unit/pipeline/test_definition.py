"""The pipeline file: what is allowed, what it means, and the errors for everything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.errors import ConfigError
from tailrace.pipeline.definition import load
from tailrace.sinks.replica.form import Form
from tests.unit.pipeline.definitions import MINIMAL, refusal, written


def test_defaults(tmp_path: Path) -> None:
    definition = written(tmp_path, MINIMAL)
    assert (definition.name, definition.entry.name, definition.steps) == ("tailrace", "postgres", ())
    assert definition.trigger_options() == {"processingTime": "500 milliseconds"}
    assert definition.sink.kind == "console"


def test_paths_are_relative_to_the_file_and_urls_stay(tmp_path: Path) -> None:
    definition = written(
        tmp_path, "{source: {config: shop.json}, sink: {replica: {path: out}}, checkpoint: 's3://bucket/state'}"
    )
    assert definition.source.config == str(tmp_path / "shop.json")
    assert definition.sink.replica is not None
    assert definition.sink.replica.path == str(tmp_path / "out")
    assert definition.checkpoint == "s3://bucket/state"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{kafka: {bootstrap.servers: 'a:9092', properties: {linger.ms: 5}}}", "kafka"),
        ("{replica: {path: x, engine: spark}}", "replica"),
        ("{parquet: {path: x}}", "parquet"),
        ("{json: {path: x}}", "json"),
        ("{console: }", "console"),
        ("{null: }", "null"),
        ("'null'", "null"),
    ],
)
def test_every_sink(tmp_path: Path, text: str, kind: str) -> None:
    assert written(tmp_path, MINIMAL.replace("console", text)).sink.kind == kind


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("10s", {"processingTime": "10 seconds"}),
        ("2 minutes", {"processingTime": "2 minutes"}),
        ("once", {"once": True}),
        ("availableNow", {"availableNow": True}),
    ],
)
def test_triggers(tmp_path: Path, text: str, options: dict[str, object]) -> None:
    assert written(tmp_path, MINIMAL + f"trigger: {text}\n").trigger_options() == options


@pytest.mark.parametrize(
    ("text", "pause"),
    [("sink: console", 0), ("sink: {replica: {path: a}}", 8), ("sink: {replica: {path: a}}\ntrigger: 500ms", 0)],
)
def test_only_a_replica_without_a_trigger_pauses(tmp_path: Path, text: str, pause: float) -> None:
    definition = written(tmp_path, f"source: {{config: a.json}}\ncheckpoint: c\n{text}\n")
    assert definition.pause_seconds == pause
    assert definition.trigger_options() == {"processingTime": "500 milliseconds"}


@pytest.mark.parametrize(
    ("settings", "minutes"),
    [("", None), (", retention: 30m", 30), (", retention: 7 days", 10080)],
)
def test_retention_of_a_replica(tmp_path: Path, settings: str, minutes: int | None) -> None:
    text = f"source: {{config: a.json}}\ncheckpoint: c\nsink: {{replica: {{path: a{settings}}}}}\n"
    target = written(tmp_path, text).sink.replica
    assert target is not None
    assert target.retention_minutes == minutes


@pytest.mark.parametrize(
    ("sink", "in_java"),
    [
        ("console", True),
        ("{parquet: {path: p}}", True),
        ("{json: {path: p}}", True),
        ("{replica: {path: p, engine: spark}}", True),
        ("{replica: {format: iceberg, engine: spark, namespace: n, catalog: {type: sql, uri: 'sqlite:///c'}}}", True),
        ("{replica: {format: iceberg, engine: pyiceberg, namespace: n, catalog: {type: sql}}}", False),
        ("{replica: {path: p}}", False),
        ("{kafka: {bootstrap_servers: k}}", False),
        ("{'null': {}}", False),
    ],
)
def test_whether_rows_go_through_java(tmp_path: Path, sink: str, in_java: bool) -> None:
    assert written(tmp_path, MINIMAL.replace("console", sink)).rows_in_java is in_java


def test_how_delta_tables_are_stored(tmp_path: Path) -> None:
    settings = "retention: 7d, partition_by: {'public.orders': region, '.*': [a, b]}, "
    settings += "table_properties: {delta.enableChangeDataFeed: true, delta.checkpointInterval: 20, owner: shop}"
    text = f"source: {{config: a.json}}\ncheckpoint: c\nsink: {{replica: {{path: a, {settings}}}}}\n"
    target = written(tmp_path, text).sink.replica
    assert target is not None
    forms = target.layout.forms
    properties = {"delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "20", "owner": "shop"}
    assert forms.of("public.orders") == Form(properties, ("region",))
    assert forms.of("public.items") == Form(properties, ("a", "b"))


def test_a_retention_without_its_unit_is_refused(tmp_path: Path) -> None:
    for wrong in ("2", "0h", "2 weeks"):
        text = f"source: {{config: a.json}}\ncheckpoint: c\nsink: {{replica: {{path: a, retention: '{wrong}'}}}}\n"
        assert "number of minutes, hours or days such as 30m, 2h or 7d" in refusal(tmp_path, text)


def test_two_columns_about_changes_with_one_name_are_refused(tmp_path: Path) -> None:
    names = "{commit_time: _at, op: _AT}"
    text = f"source: {{config: a.json}}\ncheckpoint: c\nsink: {{replica: {{path: a, metadata: {names}}}}}\n"
    assert "op and commit_time have one name, _at" in refusal(tmp_path, text)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_bytes("name: Müller".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"pipeline\.yaml: is no UTF-8 text"):
        load(file)


def test_a_connector_file_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "shop.json").write_text('{"name": "c", "config": {"topic.prefix": "shop", "slot.name": "s"}}')
    (tmp_path / "shop.properties").write_text("topic.prefix=shop\nslot.name : s\n")
    for name in ("shop.json", "shop.properties"):
        found = written(tmp_path, MINIMAL.replace("{database.hostname: db}", name)).properties()
        assert found["topic.prefix"] == "shop"
        assert found["slot.name"] == "s"


def test_inline_properties_may_be_numbers_and_flags(tmp_path: Path) -> None:
    text = MINIMAL.replace("database.hostname: db", "database.port: 5433, tombstones.on.delete: false")
    assert written(tmp_path, text).properties() == {
        "signal.folder": str(tmp_path / "state" / "signals"),
        "database.port": "5433",
        "tombstones.on.delete": "false",
    }


def test_a_replica_follows_truncates_unless_configured_otherwise(tmp_path: Path) -> None:
    replica = MINIMAL.replace("console", "{replica: {path: x}}")
    assert written(tmp_path, replica).properties()["skipped.operations"] == "none"
    told = replica.replace("database.hostname: db", "skipped.operations: d")
    assert written(tmp_path, told).properties()["skipped.operations"] == "d"
    assert "skipped.operations" not in written(tmp_path, MINIMAL).properties()


def test_secrets_are_not_in_the_text_of_a_definition(tmp_path: Path) -> None:
    text = MINIMAL.replace("database.hostname: db", "database.password: hush").replace(
        "console", "{kafka: {bootstrap.servers: a, properties: {sasl.password: hush}}}"
    )
    assert "hush" not in repr(written(tmp_path, text))


def test_out_of_range_is_passed_to_the_connector(tmp_path: Path) -> None:
    def given(text: str) -> dict[str, str]:
        replica = MINIMAL.replace("sink: console", "sink: {replica: {path: r, out_of_range: " + text + "}}")
        assert replica != MINIMAL
        found = written(tmp_path, replica).properties()
        return {name: value for name, value in found.items() if name.startswith("column.out.of.range")}

    assert given("error") == {}
    assert given("null") == {"column.out.of.range.null": ".*"}
    assert given("text") == {"column.out.of.range.text": ".*"}
    assert given("{'public[.]a[.].*': null, 'public[.]b[.]d': text, 'public[.]b[.]e': text}") == {
        "column.out.of.range.null": "public[.]a[.].*",
        "column.out.of.range.text": "public[.]b[.]d,public[.]b[.]e",
    }
    with pytest.raises(ConfigError, match="out_of_range"):
        given("maybe")
