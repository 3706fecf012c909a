"""Positions in a MongoDB log (texts of resume tokens, which sort in log order), and the `source` block.

A resume token is `{"_data": "<hexadecimal>"}`. The text is a KeyString, whose first nine bytes are the type of a
timestamp and the cluster time; servers compare tokens by these bytes. A position is such a text, or its first nine
bytes alone: the beginning of a cluster time, which comes before all of its events. Some tokens need `_typeBits` to be
resumed; these follow after a colon.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from bson import Timestamp
from bson.binary import Binary

from tailrace.connectors.lost_log_remedies import NEW_SNAPSHOT
from tailrace.errors import OffsetError
from tailrace.model.change import UPDATE_DESCRIPTION
from tailrace.model.schema import OPTIONAL_INT64, OPTIONAL_STRING, STRING, ConnectSchema, Field
from tailrace.model.source import AFTER, BEFORE, SOURCE, TRANSACTION_BLOCK, EnvelopeLayout, SourceBlock

INT32 = ConnectSchema("int32")
JSON = ConnectSchema("string", optional=True, name="io.debezium.data.Json", version=1)
_CHANGE_STREAM = "io.debezium.connector.mongodb.changestream."
_TRUNCATED = ConnectSchema(
    "struct", name=_CHANGE_STREAM + "truncatedarray", version=1, fields=(Field("field", STRING), Field("size", INT32))
)
_UPDATE_DESCRIPTION = ConnectSchema(
    "struct",
    optional=True,
    name=_CHANGE_STREAM + "updatedescription",
    version=1,
    fields=(
        Field("removedFields", ConnectSchema("array", optional=True, items=STRING)),
        Field("updatedFields", JSON),
        Field("truncatedArrays", ConnectSchema("array", optional=True, items=_TRUNCATED)),
    ),
)
DESCRIPTION_TYPE = pa.struct(
    [
        ("removedFields", pa.list_(pa.string())),
        ("updatedFields", pa.string()),
        ("truncatedArrays", pa.list_(pa.struct([("field", pa.string()), ("size", pa.int32())]))),
    ]
)
# Columns that only earlier releases have in `source` are null today.
SOURCE_TYPE = pa.struct(
    [
        ("ord", pa.int32()),
        ("lsid", pa.string()),
        ("txnNumber", pa.int64()),
        ("wallTime", pa.int64()),
        ("rs", pa.string()),
        ("h", pa.int64()),
        ("tord", pa.int64()),
        ("stxnid", pa.string()),
    ]
)
BLOCK = SourceBlock(
    connector="mongodb",
    schema_name="io.debezium.connector.mongo.Source",
    fields=(
        Field("collection", STRING),
        Field("ord", INT32),
        Field("lsid", OPTIONAL_STRING),
        Field("txnNumber", OPTIONAL_INT64),
        Field("wallTime", OPTIONAL_INT64),
    ),
    transaction_id=("lsid", "txnNumber"),
    event_id=(("ts", "ts_ms"), ("ord", "ord")),
    envelope=EnvelopeLayout(
        (
            BEFORE,
            AFTER,
            Field(UPDATE_DESCRIPTION, _UPDATE_DESCRIPTION),
            SOURCE,
            Field("op", OPTIONAL_STRING),
            Field("ts_ms", OPTIONAL_INT64),
            Field("transaction", TRANSACTION_BLOCK),
        ),
        is_document=True,
    ),
)
_TIMESTAMP = "82"  # the type byte of a timestamp in a KeyString
_TIME_LENGTH = 18


def beginning_of(time: int) -> str:
    """The position before all events of a cluster time, given as a 64-bit BSON timestamp."""
    return f"{_TIMESTAMP}{time:016X}"


def end_of(time: int) -> str:
    """The position after all events of a cluster time."""
    return beginning_of(time + 1)


def time_of(position: str) -> int:
    """The cluster time of a position, as a 64-bit BSON timestamp."""
    return int(position[len(_TIMESTAMP) : _TIME_LENGTH], 16)


def last_before(position: str) -> int | None:
    """The cluster time of the change that `end_of` made this position of; None for a resume token."""
    return time_of(position) - 1 if len(position) == _TIME_LENGTH else None


def timestamp(time: int) -> Timestamp:
    """A 64-bit BSON timestamp as the driver has it."""
    return Timestamp(time >> 32, time & 0xFFFFFFFF)


def number(time: Timestamp) -> int:
    """The inverse of `timestamp`."""
    return time.time << 32 | time.inc


def of_token(token: Any) -> str:
    """The position of a resume token, a document."""
    bits = token.get("_typeBits")
    return token["_data"] if bits is None else f"{token['_data']}:{bytes(bits).hex().upper()}"


def start_options(position: str) -> dict[str, Any]:
    """The option that makes a change stream start at a position, also behind the event that ended another stream."""
    if len(position) <= _TIME_LENGTH:
        return {"startAtOperationTime": timestamp(time_of(position))}
    data, _, bits = position.partition(":")
    return {"startAfter": {"_data": data, **({"_typeBits": Binary(bytes.fromhex(bits))} if bits else {})}}


def parse(text: str) -> str:
    """A position from its text. Raises OffsetError."""
    try:
        if text[:2] != _TIMESTAMP or len(text) < _TIME_LENGTH:
            raise ValueError
        time_of(text)
    except ValueError as error:
        what = f"{text!r} is no position of a MongoDB log"
        raise OffsetError(what, remedy=NEW_SNAPSHOT) from error
    return text
