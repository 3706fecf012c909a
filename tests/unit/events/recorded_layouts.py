"""The envelopes of all databases as data, for recordings of databases that have no connector here yet as well."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tailrace.connectors.postgres import position as postgres
from tailrace.model.schema import OPTIONAL_INT64, OPTIONAL_STRING, STRING, ConnectSchema, Field
from tailrace.model.source import AFTER, BEFORE, SOURCE, TRANSACTION_BLOCK, EnvelopeLayout, SourceBlock
from tailrace.model.table_id import DATABASE_SCHEMA_TABLE, DATABASE_TABLE, SCHEMA_TABLE

SHARED = Path(os.environ.get("TAILRACE_SHARED") or Path(__file__).parents[4] / "shared")
KEPT = Path(__file__).parents[2] / "golden"

_INT32 = ConnectSchema("int32")
_JSON = ConnectSchema("string", optional=True, name="io.debezium.data.Json", version=1)
_CHANGE_STREAM = "io.debezium.connector.mongodb.changestream."
_TRUNCATED = ConnectSchema(
    "struct", name=_CHANGE_STREAM + "truncatedarray", version=1, fields=(Field("field", STRING), Field("size", _INT32))
)
_UPDATE_DESCRIPTION = ConnectSchema(
    "struct",
    optional=True,
    name=_CHANGE_STREAM + "updatedescription",
    version=1,
    fields=(
        Field("removedFields", ConnectSchema("array", optional=True, items=STRING)),
        Field("updatedFields", _JSON),
        Field("truncatedArrays", ConnectSchema("array", optional=True, items=_TRUNCATED)),
    ),
)
_NAMES = (Field("schema", STRING), Field("table", STRING))
_LSNS = (Field("change_lsn", OPTIONAL_STRING), Field("commit_lsn", OPTIONAL_STRING))
_LSN_TYPES = [("change_lsn", pa.string()), ("commit_lsn", pa.string())]


@dataclass(frozen=True)
class Recorded:
    """The recordings of one database: its envelopes, its batches' `source` columns, and which parts name a table."""

    database: str
    block: SourceBlock
    source: pa.StructType
    shown: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where its scenarios lie: all of them, where there are more than those that are kept here."""
        everything = SHARED / "golden" / self.database
        return everything if everything.exists() else KEPT / self.database

    def scenarios(self, *without: str) -> list[str]:
        """The names of its scenarios, but for those with these beginnings."""
        return sorted(
            each.parent.name
            for each in self.folder.glob("*/expected.jsonl")
            if not each.parent.name.startswith(without)
        )


POSTGRES = Recorded("postgres", postgres.SOURCE, postgres.SOURCE_TYPE, SCHEMA_TABLE)
MONGODB = Recorded(
    "mongodb",
    SourceBlock(
        connector="mongodb",
        schema_name="io.debezium.connector.mongo.Source",
        fields=(
            Field("collection", STRING),
            Field("ord", _INT32),
            Field("lsid", OPTIONAL_STRING),
            Field("txnNumber", OPTIONAL_INT64),
            Field("wallTime", OPTIONAL_INT64),
        ),
        transaction_id=("lsid", "txnNumber"),
        envelope=EnvelopeLayout(
            (
                BEFORE,
                AFTER,
                Field("updateDescription", _UPDATE_DESCRIPTION),
                SOURCE,
                Field("op", OPTIONAL_STRING),
                Field("ts_ms", OPTIONAL_INT64),
                Field("transaction", TRANSACTION_BLOCK),
            ),
            is_document=True,
        ),
    ),
    pa.struct([("ord", pa.int32()), ("lsid", pa.string()), ("txnNumber", pa.int64()), ("wallTime", pa.int64())]),
    DATABASE_TABLE,
)
SQLSERVER = Recorded(
    "sqlserver",
    SourceBlock(
        connector="sqlserver",
        schema_name="io.debezium.connector.sqlserver.Source",
        fields=(*_NAMES, *_LSNS, Field("event_serial_no", OPTIONAL_INT64)),
        transaction_id=("commit_lsn",),
        position=("commit_lsn", "change_lsn", "event_serial_no"),
    ),
    pa.struct([*_LSN_TYPES, ("event_serial_no", pa.int64())]),
    DATABASE_SCHEMA_TABLE,
)
DB2 = Recorded(
    "db2",
    SourceBlock(
        connector="db2",
        schema_name="io.debezium.connector.db2.Source",
        fields=(*_NAMES, *_LSNS),
        transaction_id=("commit_lsn",),
        position=("commit_lsn", "change_lsn"),
        change_id=SCHEMA_TABLE,
    ),
    pa.struct(_LSN_TYPES),
    SCHEMA_TABLE,
)
ALL = (POSTGRES, MONGODB, SQLSERVER, DB2)
