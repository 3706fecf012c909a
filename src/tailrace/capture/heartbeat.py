"""Heartbeats: records that show that a source is being read, also while it is idle."""

from __future__ import annotations

import pyarrow as pa

from tailrace.config.topics import TopicNaming
from tailrace.model.change import ControlBatch
from tailrace.model.schema import INT64, STRING, ConnectSchema, Field
from tailrace.model.text.json import dump

KEY = ConnectSchema(
    "struct",
    name="io.debezium.connector.common.ServerNameKey",
    version=1,
    fields=(Field("serverName", STRING),),
)
VALUE = ConnectSchema(
    "struct", name="io.debezium.connector.common.Heartbeat", version=1, fields=(Field("ts_ms", INT64),)
)


def heartbeat(naming: TopicNaming, ts_ms: int) -> ControlBatch:
    """One heartbeat, for partition 0 of the heartbeat topic."""
    row = {"key": [dump({"serverName": naming.heartbeat_server})], "value": [dump({"ts_ms": ts_ms})], "partition": [0]}
    schema = pa.schema([("key", pa.string()), ("value", pa.string()), ("partition", pa.int32())])
    return ControlBatch(naming.heartbeat, KEY, VALUE, pa.record_batch(row, schema=schema))
