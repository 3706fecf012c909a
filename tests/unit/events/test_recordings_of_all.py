"""What the reference engine recorded for four databases, made into batches and encoded, is the same byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tailrace.capture.heartbeat import heartbeat
from tailrace.config import Config
from tailrace.config.topics import TopicNaming
from tailrace.connectors import notifications
from tailrace.events.record import RecordEncoder
from tailrace.events.rows import RowWriter
from tailrace.events.unfold import Unfolder
from tailrace.model.change import ChangeBatch, ControlBatch
from tailrace.model.schema import STRING, Field
from tailrace.model.schema_change import DescribedColumn, SchemaChange
from tailrace.model.source import EnvelopeLayout, SourceBlock
from tailrace.model.table import TableId, TableSchema
from tests.unit.events import event_recordings as recordings
from tests.unit.events.event_recordings import RUN_ID, stable
from tests.unit.events.recorded_layouts import ALL, DB2, MONGODB, POSTGRES, SQLSERVER, Recorded

# Left out: values of transformations and values without schemas. Of PostgreSQL also incremental reads (their `sequence`
# has another position than `lsn`), keys whose masked columns the rows have as they are, logical messages, a scale of
# 2047, which is a fault of the reference and no Arrow type, and numbers whose last digits Java 17 prints otherwise.
NOT_HERE = ("transform-", "changed-bits", "converter-schemas-off")
NOT_OF_POSTGRES = (
    "signal-incremental",
    "signal-stop",
    "signal-excluded",
    "masks-of-keys",
    "notifications",
    "logical-messages",
    "types-numeric-neg",
    "dates-of-the-driver",
)
# Thousands of events: 1.5 s of a processor each.
LARGE = ("signal-stop-snapshot", "large-transaction")

Record = tuple[Any, ...]


def scenarios(*databases: Recorded) -> list[Any]:
    """The scenarios of these databases as parameters."""
    return [
        pytest.param(of, name, id=f"{of.database}-{name}", marks=[pytest.mark.slow] if name in LARGE else [])
        for of in databases
        for name in of.scenarios(*NOT_HERE, *(NOT_OF_POSTGRES if of is POSTGRES else ()))
    ]


def recorded(line: str) -> Record:
    """Topic, partition, key, value and headers of a recorded line; key and value are the bytes that stand in it."""
    event = json.loads(line)
    at_key, at_value = line.index('"key":') + 6, line.index(',"value":', line.index('"key":'))
    key, value = line[at_key:at_value], line[at_value + 9 : line.rindex(',"headers":{')]
    headers = {name: _header(name, json.dumps(node, separators=(",", ":"))) for name, node in event["headers"].items()}
    texts = (None if text == "null" else stable(text) for text in (key, value))
    return event["topic"], event["partition"], *texts, headers


def produced(rows: pa.RecordBatch) -> list[Record]:
    """The same of rows of the schema KAFKA."""
    return [
        (
            row["topic"],
            row["partition"],
            row["key"],
            stable(row["value"]),
            {each["key"]: _header(each["key"], each["value"].decode()) for each in row["headers"] or ()},
        )
        for row in rows.to_pylist()
    ]


def _header(name: str, text: str) -> str | None:
    return stable(f"{name} {text}")


def by_text(config: Config, block: SourceBlock, batch: ChangeBatch | ControlBatch) -> Iterator[pa.RecordBatch]:
    """The batch's rows without transforms."""
    return RecordEncoder(config, block, RUN_ID).encode(batch)


def by_columns(config: Config, block: SourceBlock, batch: ChangeBatch | ControlBatch) -> Iterator[pa.RecordBatch]:
    """The batch's rows as they are with transforms."""
    unfolder, writer = Unfolder(config, block, RUN_ID), RowWriter(config, block)
    for group in unfolder.unfold(batch):
        yield from writer.rows(group)


def table_events(of: Recorded, scenario: str, block: SourceBlock) -> tuple[list[Record], list[Record], list[Record]]:
    """The recorded events of tables, and what is encoded from them without and with columns."""
    lines, config = recordings.lines(scenario, of), recordings.config_of(scenario, of)
    names = recordings.original("\n".join(lines)) if scenario == "names-avro-unicode" else None
    wanted, texts, columns = [], [], []
    for batch, mine in recordings.batches(lines, names, of):
        wanted += [recorded(line) for line in mine]
        texts += [record for rows in by_text(config, block, batch) for record in produced(rows)]
        columns += [record for rows in by_columns(config, block, batch) for record in produced(rows)]
    return wanted, texts, columns


@pytest.mark.parametrize(("of", "scenario"), scenarios(*ALL))
def test_table_events(of: Recorded, scenario: str) -> None:
    wanted, texts, columns = table_events(of, scenario, of.block)
    assert texts == wanted
    assert columns == wanted


def test_there_are_recordings_of_all() -> None:
    assert all(len(of.scenarios()) > 5 for of in ALL)


def _without(block: SourceBlock, name: str) -> SourceBlock:
    members = tuple(each for each in block.envelope.members if isinstance(each, str) or each.name != name)
    return replace(block, envelope=replace(block.envelope, members=members))


@pytest.mark.parametrize(
    ("of", "scenario", "wrong"),
    [
        (MONGODB, "basic-crud-change-streams-update-full-with-pre-image", _without(MONGODB.block, "updateDescription")),
        (
            MONGODB,
            "basic-crud-change-streams-update-full-with-pre-image",
            replace(MONGODB.block, envelope=replace(MONGODB.block.envelope, version=2)),
        ),
        (SQLSERVER, "basic-crud", replace(SQLSERVER.block, fields=SQLSERVER.block.fields[::-1])),
        (DB2, "basic-crud", replace(DB2.block, fields=(*DB2.block.fields[:3], Field("commit_lsn", STRING)))),
        (
            POSTGRES,
            "basic-crud",
            replace(POSTGRES.block, envelope=EnvelopeLayout(POSTGRES.block.envelope.members[::-1], 2)),
        ),
    ],
)
def test_a_wrong_layout_is_noticed(of: Recorded, scenario: str, wrong: SourceBlock) -> None:
    wanted, *both = table_events(of, scenario, wrong)
    for found in both:
        assert len(found) == len(wanted)
        assert found != wanted


def described(change: dict[str, Any], payload: dict[str, Any]) -> SchemaChange:
    """The change that a record tells of."""
    table = change["table"]
    columns = tuple(
        DescribedColumn(
            each["name"],
            each["jdbcType"],
            each["typeName"],
            each["position"],
            native_type=each["nativeType"],
            type_expression=each["typeExpression"],
            charset=each["charsetName"],
            length=each["length"],
            scale=each["scale"],
            optional=each["optional"],
            auto_incremented=each["autoIncremented"],
            generated=each["generated"],
            comment=each["comment"],
            default=each["defaultValueExpression"],
            enum_values=each["enumValues"],
        )
        for each in table["columns"]
    )
    key, database = tuple(table["primaryKeyColumnNames"]), payload["databaseName"]
    is_named = database == payload["source"]["db"]
    return SchemaChange(
        change["type"],
        payload["ddl"],
        1,
        key,
        columns=columns,
        comment=table["comment"],
        database=None if is_named else database,
    )


def schema_change(record: dict[str, Any], of: Recorded) -> ChangeBatch:
    """The batch that gives a record of a schema change."""
    payload = record["value"]["payload"]
    source = payload["source"]
    table = TableSchema(TableId(source["db"], source["schema"], source["table"], of.shown), (), (), ())
    (change,) = payload["tableChanges"]
    marker = None if source["snapshot"] == "false" else source["snapshot"]
    rows = {
        "op": pa.array(["s"]),
        "order": pa.array([0], pa.int64()),
        "ts_us": pa.array([source["ts_us"]], pa.int64()),
        "snapshot": pa.array([marker], pa.string()),
        "source": pa.array([source], of.source),
        "before": pa.nulls(1, table.row_type),
        "after": pa.nulls(1, table.row_type),
    }
    return ChangeBatch(table, pa.record_batch(rows), schema_change=described(change, payload))


@pytest.mark.parametrize("encode", [by_text, by_columns])
@pytest.mark.parametrize(
    ("of", "scenario"), [(SQLSERVER, "schema-evolution"), (SQLSERVER, "schema-changes-at-start"), (DB2, "table-added")]
)
def test_schema_changes(of: Recorded, scenario: str, encode: Any) -> None:
    config = recordings.config_of(scenario, of)
    lines = [line for line in recordings.lines(scenario, of) if ".SchemaChangeValue" in line]
    kinds = {json.loads(line)["value"]["payload"]["tableChanges"][0]["type"] for line in lines}
    assert kinds & {"CREATE", "ALTER"}
    for line in lines:
        rows = encode(config, of.block, schema_change(json.loads(line), of))
        assert [each for batch in rows for each in produced(batch)] == [recorded(line)]


@pytest.mark.parametrize("of", [MONGODB, SQLSERVER], ids=lambda of: of.database)
def test_heartbeats(of: Recorded) -> None:
    config = recordings.config_of("heartbeat", of)
    naming = TopicNaming(config)
    lines = [line for line in recordings.lines("heartbeat", of) if json.loads(line)["topic"] == naming.heartbeat]
    assert lines
    for line in lines:
        control = heartbeat(naming, json.loads(line)["value"]["payload"]["ts_ms"])
        assert [each for rows in by_text(config, of.block, control) for each in produced(rows)] == [recorded(line)]


def test_notifications() -> None:
    """But for the clock, and the order of the data, which is that of a Java hash map."""
    topic = "notifications"
    config = recordings.configured({"notification.enabled.channels": "sink", "notification.sink.topic.name": topic})
    lines = [line for line in recordings.lines("notifications-sink", MONGODB) if '"aggregate_type"' in line]
    assert lines
    for line in lines:
        payload = json.loads(line)["value"]["payload"]
        data = tuple((name, text) for name, text in payload["additional_data"].items() if name != "connector_name")
        notice = notifications.Notice(payload["aggregate_type"], payload["type"], data, payload["id"])
        (control,) = notifications.notify(config, [notice])
        (found,) = [each for rows in by_text(config, MONGODB.block, control) for each in produced(rows)]
        wanted = recorded(line)
        assert found[:3] == wanted[:3]
        mine, its = json.loads(found[3]), json.loads(wanted[3])
        assert mine.pop("payload") | {"timestamp": 0} == its.pop("payload") | {"timestamp": 0}
        assert mine == its
