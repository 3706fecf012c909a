"""Reads documents as of a cluster time, by commands whose answers stay BSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import bson
from bson import json_util
from bson.binary import UUID_SUBTYPE, Binary
from bson.errors import BSONError
from pymongo import ReadPreference
from pymongo.errors import OperationFailure

from tailrace.connectors.mongodb.client import ALL_DATES, RAW, SNAPSHOT_UNAVAILABLE, Client
from tailrace.connectors.mongodb.log.batch import CursorBatch, read_batch
from tailrace.connectors.mongodb.position import number, timestamp
from tailrace.errors import SourceError
from tailrace.model.table import TableId

Find = dict[str, Any]
_SHOWN = 100  # guessed


def cluster_time(client: Client) -> int:
    """The time of the newest change that a majority of the members has, as a 64-bit BSON timestamp.

    Raises SourceError for a server that is no member of a replica set and no mongos: it has no change streams.
    """
    answer = client.admin.command("hello")
    if "setName" not in answer and answer.get("msg") != "isdbgrid":
        remedy = "start mongod with --replSet and run rs.initiate(); a set of one member is enough"
        raise SourceError("the server is no member of a replica set, so it has no change streams", remedy=remedy)
    newest = answer.get("lastWrite", {}).get("majorityOpTime", {}).get("ts") or answer["operationTime"]
    return number(newest)


def written_before(client: Client) -> tuple[int, int] | None:
    """The primary's clock in microseconds since 1970, and the newest change after that, as a 64-bit BSON timestamp.

    Whatever was acknowledged before the clock, by any write concern, is at or before that change. None from a member
    that is not the primary, and through mongos, which does not know the newest change of every shard.
    """
    admin = client.admin
    # One answer has the change before the clock: so of the first one the clock counts, and the change of the second.
    clock = admin.command("hello", read_preference=ReadPreference.PRIMARY)["localTime"]
    answer = admin.command("hello", read_preference=ReadPreference.PRIMARY)
    newest = answer.get("lastWrite", {}).get("opTime", {}).get("ts")
    if newest is None or not answer.get("isWritablePrimary"):
        return None
    return int(clock.timestamp() * 1000) * 1000, number(newest)


def oldest_time(client: Client) -> int | None:
    """Where the server's log begins; None through mongos, and where the user may not read the database `local`."""
    try:
        first = client.local["oplog.rs"].find_one(sort=[("$natural", 1)], projection={"ts": 1})
    except OperationFailure:
        return None
    return None if first is None else number(first["ts"])


def lacks_change(client: Client, time: int) -> bool:
    """Whether the server's log has no change of that cluster time, though it may have later ones.

    A member that is behind the primary says nothing where its log ends earlier.
    """
    log = client.get_database("local", read_preference=ReadPreference.PRIMARY)["oplog.rs"]
    # With $gte the server finds the place by itself.
    entry = log.find_one({"ts": {"$gte": timestamp(time)}}, projection={"ts": 1})
    if entry is not None:
        return number(entry["ts"]) != time
    answer = client.admin.command("hello", read_preference=ReadPreference.PRIMARY)
    return bool(answer.get("isWritablePrimary"))


def at_time(time: int) -> Find:
    """The option of a read as of a cluster time."""
    return {"readConcern": {"level": "snapshot", "atClusterTime": timestamp(time)}}


def between(low: bytes | None, high: bytes | None) -> Find:
    """Options for the documents of [low, high) in the order of `_id`, whatever its types are. Both are BSON."""
    bounds = {name: bson.decode(each, ALL_DATES) for name, each in (("min", low), ("max", high)) if each is not None}
    return {"hint": {"_id": 1}, "sort": {"_id": 1}, **bounds}


def of_collection(uuid: bytes | None) -> Find:
    """The option of a read that the server refuses (UUID_MISMATCH) where the name is that of another collection."""
    return {} if uuid is None else {"collectionUUID": Binary(uuid, UUID_SUBTYPE)}


def batches(client: Client, table: TableId, options: Mapping[str, Any]) -> Iterator[CursorBatch]:
    """The answers of a `find`, each with some documents or none.

    The server reads a capped collection as of no time, so it is read as it is now: the log sends what came since again.
    """
    database = client[table.database]
    with _session(client) as session:
        find = {"find": table.table, **options}
        try:
            answer = database.command(find, codec_options=RAW, session=session)
        except OperationFailure as error:
            if error.code != SNAPSHOT_UNAVAILABLE or "capped" not in str(error):
                raise
            find["readConcern"] = {"level": "majority"}
            answer = database.command(find, codec_options=RAW, session=session)
        batch = read_batch(bytes(answer.raw))
        yield batch
        more = {"batchSize": options["batchSize"]} if options.get("batchSize") else {}
        while batch.cursor:
            command = {"getMore": batch.cursor, "collection": table.table, **more}
            batch = read_batch(bytes(database.command(command, codec_options=RAW, session=session).raw))
            yield batch


@contextmanager
def _session(client: Client) -> Iterator[Any]:
    with client.start_session(causal_consistency=False) as session:
        yield session


def key_text(value: Any) -> str:
    """An `_id` as text that `key_of` reads again with its type."""
    return json_util.dumps({"_id": value}, json_options=json_util.CANONICAL_JSON_OPTIONS)


def key_bytes(text: str) -> bytes:
    """The document `{_id: ...}` of a key's text, as BSON."""
    return bson.encode(value_of(text))


def value_of(text: str) -> Any:
    """The value of a text in extended JSON, with its type. Raises ValueError for what is no JSON or no BSON."""
    try:
        value = json_util.loads(text, json_options=_TYPED)
        bson.encode({"": value})  # refuses integers of more than 64 bits, names with a zero byte
    except (BSONError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"{text[:_SHOWN]} is no value of BSON: {error}") from error
    return value


def id_of(text: str) -> Any:
    """The `_id` of a key's text."""
    return bson.decode(key_bytes(text), ALL_DATES)["_id"]


def first_id(client: Client, table: TableId, options: Mapping[str, Any]) -> bytes | None:
    """`{_id: ...}` of the first document of a `find`, None without one."""
    return first_of(client, table, {**options, "projection": {"_id": 1}})


def first_of(client: Client, table: TableId, options: Mapping[str, Any]) -> bytes | None:
    """The first document of a `find`, as BSON; None without one."""
    documents = [each for batch in batches(client, table, {**options, "limit": 1}) for each in batch.raw_documents()]
    return documents[0] if documents else None


_TYPED = json_util.JSONOptions(
    json_mode=json_util.JSONMode.CANONICAL,
    tz_aware=True,
    datetime_conversion=ALL_DATES.datetime_conversion,
    unicode_decode_error_handler="strict",
)
