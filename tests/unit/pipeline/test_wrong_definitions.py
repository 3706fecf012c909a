"""Pipeline files that are refused: every problem at once, each in one line, and no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.errors import ConfigError
from tailrace.pipeline.definition import load
from tests.unit.pipeline.definitions import COMPLETE, MINIMAL, refusal, written


def test_every_problem_is_reported_at_once(tmp_path: Path) -> None:
    said = refusal(tmp_path, "{sourc: {config: 5}, sink: {kafka: {bootstrap.server: a}}, trigger: 5x}")
    for words in (
        "source: is missing",
        "sourc: unknown key; did you mean source?",
        "sink.kafka.bootstrap.servers: is missing",
        "sink.kafka.bootstrap.server: unknown key; did you mean bootstrap.servers?",
        "checkpoint: is missing",
        "trigger: is '5x'; write an interval such as 500ms or 10s, or once, or availableNow",
    ):
        assert words in said


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("snik: 5", "snik: unknown key; did you mean sink?"),
        ("steps: [{mask: {}}]", "steps[0]: unknown step 'mask'"),
        ("steps: [{transform: {type: X}}]", "steps[0].transform"),
    ],
)
def test_problems_of_keys_and_of_properties_are_reported_together(tmp_path: Path, wrong: str, said: str) -> None:
    text = COMPLETE.replace("topic.prefix: t", "table.inclde.list: a, database.port: x") + wrong
    told = refusal(tmp_path, text)
    for words in (said, "table.inclde.list: unknown property", "database.port", "topic.prefix: A value is required"):
        assert words in told
    (tmp_path / "c.json").write_text('{"topic.prefix": "t", "table.inclde.list": "a"}')
    told = refusal(tmp_path, f"source: {{config: c.json}}\nsink: console\ncheckpoint: c\n{wrong}")
    assert "table.inclde.list: unknown property" in told
    assert said in told
    told = refusal(tmp_path, COMPLETE.replace("console", "{}").replace("topic.prefix: t", "database.port: x"))
    assert "sink names 0 targets; remedy: Choose one of" in told
    assert "database.port" in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "is no YAML"),
        ("just words", "holds no pipeline"),
        (MINIMAL.replace("{database.hostname: db}", "5"), "source.config: should be a connector config"),
        (MINIMAL.replace("console", "{console: , 'null': }"), "sink names 2 targets"),
        (MINIMAL.replace("console", "{}"), "Choose one of kafka, replica, parquet, json, console, null."),
        (MINIMAL.replace("console", "kafkaa"), "sink.kafkaa: unknown key; did you mean kafka?"),
        (MINIMAL + "steps: [{mask: {}}]", "steps[0]: unknown step 'mask'"),
        (
            MINIMAL.replace("console", "{replica: {path: x}}") + "steps: [{route: {regex: a, replacement: b}}]",
            "a route step renames topics, and a replica has tables",
        ),
    ],
)
def test_refusals(tmp_path: Path, text: str, words: str) -> None:
    assert words in refusal(tmp_path, text)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    "value",
    [
        r'"Top\Secret99"',
        "@Top#Secret99",
        "Top: Secret99",
        "*Secret99",
        "!Secret99 a",
        "!Top!Secret99 a",
        "%Secret99",
        "'Secret99",
        "Secret99\n  ]",
        "[Secret99\n",
        "Secret99\x07",
        '"Secret99 \\xZZ"',
    ],
)
def test_an_error_in_yaml_names_the_place_and_no_value(tmp_path: Path, value: str) -> None:
    said = refusal(tmp_path, f"sink: console\nsource:\n  config:\n    database.password: {value}\ncheckpoint: c\n")
    assert "pipeline.yaml, line " in said
    assert "is no YAML: " in said
    assert "Secret" not in said


def test_a_value_that_its_yaml_type_refuses_is_an_error_with_its_line(tmp_path: Path) -> None:
    said = refusal(tmp_path, MINIMAL + "name: 2026-02-30\n")
    assert "pipeline.yaml, line 5, column 7: is no YAML: a value looks like YAML's type timestamp, but is none" in said


def test_a_key_that_is_given_twice_is_an_error(tmp_path: Path) -> None:
    lists = "    table.include.list: public.a\n    topic.prefix: t\n    table.include.list: public.b\n"
    said = refusal(tmp_path, f"sink: console\ncheckpoint: c\nsource:\n  config:\n{lists}")
    assert "line 7, column 5: the key table.include.list is given twice, first in line 5" in said
    salted = "".join(f"    column.mask.hash.MD5.with.salt.Secret: public.{name}\n" for name in "ab")
    assert "Secret" not in refusal(tmp_path, f"source:\n  config:\n{salted}")


def test_a_key_that_is_merged_in_may_be_given_again(tmp_path: Path) -> None:
    text = "source: {config: &base {topic.prefix: a, slot.name: s}}\nsink: console\ncheckpoint: c\n"
    merged = "spark:\n  <<: *base\n  topic.prefix: b\n"
    assert written(tmp_path, text + merged).spark == {"topic.prefix": "b", "slot.name": "s"}


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("c.json", '{"name": "c", "config": {"topic.prefix": "a"}}'),
        ("c.json", '{\n\t"topic.prefix": "a",\n\t"slot.name": "b"\n}'),
        ("c.json", '{"name": "c", "confg": {"topic.prefix": "a"}}'),
        ("c.properties", "topic.prefix=a\n"),
        ("c.yaml", "topic.prefix: a\n"),
    ],
)
def test_a_connectors_configuration_is_no_pipeline(tmp_path: Path, file: str, text: str) -> None:
    path = tmp_path / file
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: is a connector's configuration, and no pipeline file\n")
    assert f"`source: {{config: {file}}}`, a `sink` and a `checkpoint`" in said


def test_a_pipeline_may_be_written_in_json(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.json"
    path.write_text('{\n\t"source": {"config": "c.json"},\n\t"sink": "console",\n\t"checkpoint": "c"\n}')
    assert load(path).sink.kind == "console"


def said_of(folder: Path, text: str) -> list[str]:
    """The problems that are told of a file."""
    return [line.strip() for line in refusal(folder, COMPLETE + text).splitlines()[1:]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps: {filter: {}}", "steps: should be a list, with `- ` before each entry"),
        ("steps: [filter]", "steps[0]: should be a mapping"),
        ("name: 'my shop/1'", "name: is 'my shop/1'; only letters, digits, `.`, `_` and `-` are allowed"),
        ("spark: {a: [x]}", "spark.a: should be text, a number, true or false"),
        ("spark: {1: x}", "spark.1: a key should be text: put it in quotes"),
        ("spark: 5", "spark: should be a mapping"),
    ],
)
def test_wrong_types_are_reported_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    assert said_of(tmp_path, text) == [said]


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        ("{replica: {path: ''}}", "sink.replica.path: is empty"),
        ("{replica: {path: x, engine: y}}", "sink.replica.engine: should be 'deltalake', 'pyiceberg' or 'spark'"),
        ("{replica: {}}", "sink.replica: path is missing: the folder or URL of the Delta tables"),
        (
            "{replica: {path: x, namespace: y}}",
            "sink.replica: catalog.type should be glue, hive, unity; Delta tables are registered in no other catalog",
        ),
        (
            "{replica: {path: x, namespace: y, catalog: {type: glue}}}",
            "sink.replica: a catalog of type glue needs `names: catalog`",
        ),
        (
            "{replica: {format: iceberg, path: x, namespace: y, catalog: {type: sql}}}",
            "sink.replica: path and storage_options are of `format: delta`; Iceberg tables lie where `catalog` has "
            "them, whose properties are those of the storage as well",
        ),
        (
            "{replica: {format: iceberg, engine: deltalake, namespace: y, catalog: {type: sql}}}",
            "sink.replica: `engine: deltalake` does not write `format: iceberg`; leave engine out",
        ),
        (
            "{replica: {path: x, engine: pyiceberg}}",
            "sink.replica: `engine: pyiceberg` does not write `format: delta`; leave engine out",
        ),
        (
            "{replica: {format: iceberg, engine: spark, namespace: y, catalog: {type: bigquery}}}",
            "sink.replica: `engine: spark` knows catalogs of the types sql, rest, hive, glue, as Spark's are made by "
            "Iceberg's Java code; leave engine out",
        ),
        (
            "{replica: {format: iceberg, catalog: {type: sql}, namespace: a/b}}",
            "sink.replica: `format: iceberg` needs catalog, with pyiceberg's properties (type, uri, warehouse, ...), "
            "and namespace, of letters, digits and underscores, with dots between its levels",
        ),
        (
            "{replica: {format: iceberg, catalog: {type: glue}, namespace: a}}",
            "sink.replica: a catalog of type glue needs `names: catalog`",
        ),
        (
            "{replica: {format: postgres, url: 'postgresql://h/d', namespace: y, partition_by: [a]}}",
            "sink.replica: table_properties and partition_by are of `format: delta`",
        ),
        ("{replica: {path: x, format_version: 3}}", "sink.replica: format_version is of `format: iceberg`"),
        (
            "{replica: {format: iceberg, catalog: {type: sql}, namespace: a, format_version: 3}}",
            "sink.replica: `format_version: 3` needs a catalog of type rest, whose server writes the metadata of "
            "tables: pyiceberg writes none of that version",
        ),
        (
            "{replica: {path: x, engine: spark, partition_by: {orders: [a]}}}",
            "sink.replica: `engine: spark` makes no partitions; leave partition_by out",
        ),
        (
            "{replica: {path: x, table_properties: {delta.enableChangeDataFeed: true}}}",
            "sink.replica: `delta.enableChangeDataFeed` needs retention: without it the changes of a commit are "
            "removed after 20 seconds to two hours, as the disk space allows; set it to more than the longest pause of "
            "those who read them",
        ),
        (
            "{replica: {path: x, table_properties: {delta.enableDeletionVectors: true}}}",
            "sink.replica.table_properties: delta.enableDeletionVectors is not one that a replica may have; of Delta's "
            "it takes delta.enableChangeDataFeed, delta.checkpointInterval, delta.dataSkippingNumIndexedCols, "
            "delta.dataSkippingStatsColumns, delta.autoOptimize.autoCompact, delta.autoOptimize.optimizeWrite, "
            "delta.tuneFileSizesForRewrites",
        ),
        (
            "{replica: {path: x, table_properties: {tailrace.x: 1}}}",
            "sink.replica.table_properties: tailrace.x: names that begin with `tailrace.` are the replica's own",
        ),
        (
            "{replica: {path: x, partition_by: {'public\\.(': [a]}}}",
            "sink.replica.partition_by: public\\.( is no regular expression: missing ), unterminated subpattern at "
            "position 8",
        ),
        (
            "{replica: {path: x, partition_by: [a, a]}}",
            "sink.replica.partition_by: .*: a column is named twice",
        ),
        (
            "{replica: {path: x, partition_by: {orders: 5}}}",
            "sink.replica.partition_by: orders: should be a column, or a list of columns",
        ),
        ("{replica: {path: x, url: y}}", "sink.replica: url and password are of `format: postgres`"),
        (
            "{replica: {format: postgres, url: 'postgresql://h/d', namespace: y, retention: 7d, engine: spark}}",
            "sink.replica: engine, retention: `format: postgres` has url, password and namespace in their place, and "
            "the database keeps its tables small itself (autovacuum)",
        ),
        (
            "{replica: {format: postgres, url: 'postgresql://h/d'}}",
            "sink.replica: `format: postgres` needs url, of the database, and namespace, the schema of the tables, of "
            "at most 63 letters, digits and underscores",
        ),
        (
            "{replica: {format: postgres, url: 'postgresql://u:s3cret/@h', namespace: y}}",
            "sink.replica: `url` should be postgresql://user@host:5432/database, with characters such as @ : / ? % of "
            "a password as %40 and so on; or set `password`",
        ),
        ("{replica: {path: x, maintenance: maybe}}", "sink.replica.maintenance: should be true or false"),
        (
            "{replica: {path: x, metadata: {at: y}}}",
            "sink.replica.metadata.at: unknown key; known are 'commit_time', 'position', 'op', 'transaction', "
            "'sequence', 'valid_from', 'valid_to' or 'unchanged'",
        ),
        (
            "{replica: {path: x, metadata: {valid_from: y}}}",
            "sink.replica: metadata of `mode: latest` are commit_time, position, op, and not valid_from",
        ),
        (
            "{replica: {path: x, mode: history, metadata: {position: y}}}",
            "sink.replica: metadata of `mode: history` are valid_from, valid_to, op, commit_time, transaction, "
            "sequence, and not position",
        ),
        (
            "{replica: {path: x, mode: changes, metadata: {op: _SEQUENCE}}}",
            "sink.replica: sequence and op have one name, _SEQUENCE; give each a name of its own",
        ),
        (
            "{replica: {path: x, mode: history, engine: spark}}",
            "sink.replica: `engine: spark` merges newest rows alone; leave it out, as `mode: history` does not",
        ),
        (
            "{replica: {path: x, out_of_range: [error]}}",
            "sink.replica.out_of_range: should be error, null or text, or such a word for each expression of columns",
        ),
        (
            "{replica: {path: x, out_of_range: {'a.*': maybe}}}",
            "sink.replica.out_of_range: a.*: should be error, null or text, or such a word for each expression of "
            "columns",
        ),
        (
            "{kafka: {bootstrap.servers: a, properties: {sasl.password: [x]}}}",
            "sink.kafka.properties.sasl.password: should be text, a number, true or false",
        ),
        (
            "{kafka: {bootstrap.servers: a, state.topic: a b}}",
            "sink.kafka.state.topic: is 'a b'; only letters, digits, `.`, `_` and `-` are allowed",
        ),
    ],
)
def test_wrong_settings_of_a_sink_are_reported_in_one_line(tmp_path: Path, sink: str, said: str) -> None:
    text = COMPLETE.replace("console", sink)
    assert [line.strip() for line in refusal(tmp_path, text).splitlines()[1:]] == [said]


def test_every_wrong_step_is_reported(tmp_path: Path) -> None:
    steps = "steps: [{mask: {}}, {filter: {tables: ['(']}}, {route: {regex: a}}]\n"
    said = said_of(tmp_path, steps)
    assert [line.split(":")[0] for line in said] == ["steps[0]", "steps[1].filter", "steps[2].route"]
    assert said_of(tmp_path, steps + "sinks: 5") == ["sinks: unknown key; did you mean sink?", *said]


def test_a_date_in_a_step_is_text(tmp_path: Path) -> None:
    steps = "steps: [{filter: {tables: [2026-01-02]}}]"
    assert written(tmp_path, MINIMAL + steps).steps_text() == '[{"filter": {"tables": ["2026-01-02"]}}]'


@pytest.mark.parametrize(("character", "code"), [("\0", "U+0000"), ("\x07", "U+0007"), ("\x80", "U+0080")])
def test_a_character_that_yaml_does_not_allow_is_named(tmp_path: Path, character: str, code: str) -> None:
    assert f"the character {code} is not allowed" in refusal(tmp_path, f"name: a\nsource: {character}\n")
