"""The properties of the MongoDB connector, and the checks that concern several of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tailrace.config import resolve as resolution
from tailrace.config import shared
from tailrace.config.filters import check_signal_table
from tailrace.config.kinds import COUNT, FLAG, LONG, NAMES, PATTERNS, POSITIVE_LONG, TEXT, choice
from tailrace.config.option import Alias, Option, OptionTable, Status, without_effect
from tailrace.config.resolve import Check, Config, Problem
from tailrace.connectors.mongodb.declared import OPTION as COLUMNS
from tailrace.connectors.mongodb.declared import parse_declarations
from tailrace.connectors.mongodb.fields import parse_rules
from tailrace.connectors.mongodb.shell import loads
from tailrace.connectors.registry import elsewhere
from tailrace.errors import ConfigError
from tailrace.model.table_id import DATABASE_TABLE, TableNaming

CONNECT = Status.CONNECT
CLASS = "io.debezium.connector.mongodb.MongoDbConnector"
OVERRIDES = "snapshot.collection.filter.overrides"
NAMING = TableNaming(DATABASE_TABLE, system_schemas="", system_tables=())
SYSTEM_DATABASES = ("admin", "config", "local")
_LISTS = tuple(f"{kind}.{side}.list" for kind in ("database", "collection") for side in ("include", "exclude"))
OPLOG = "oplog"
FOR_REPLICA = "capture.for.replica"
_JAVA_STORE = "give a PEM file; PKCS12 is converted by `openssl pkcs12 -in store.p12 -out store.pem -nodes`"

_ONE_SET = "mongodb.connection.string names the whole deployment: a replica set, or mongos"
_MODE = choice("sharded", refused={"replica_set": _ONE_SET})


def _address_of(hosts: str) -> str:
    """The connection string of `mongodb.hosts`: `rs0/host:port,host:port`, or hosts alone."""
    name, slash, listed = hosts.strip().rpartition("/")
    return f"mongodb://{listed}/" + (f"?replicaSet={name}" if slash and name else "")


def _with_names(options: Iterable[Option], names: Mapping[str, str]) -> tuple[Option, ...]:
    """The options. Some also have a name of Debezium 1."""
    return tuple(
        replace(each, aliases=(*each.aliases, Alias(names[each.name]))) if each.name in names else each
        for each in options
    )


CONNECTION = (
    Option("connector.class", choice(CLASS), None, "Class of the connector."),
    Option(
        "mongodb.connection.string",
        TEXT,
        None,
        "`mongodb://` or `mongodb+srv://` address. What it says goes before the properties below.",
        required=True,
        secret=True,
        aliases=(Alias("mongodb.hosts", form=_address_of),),
    ),
    Option(
        "mongodb.connection.mode",
        choice("sharded", refused={"replica_set": _ONE_SET}),
        None,
        "Removed.",
        CONNECT,
        _ONE_SET,
    ),
    Option("mongodb.connection.string.shard.params", TEXT, None, "Parameters of shards.", Status.REFUSED, _ONE_SET),
    Option("mongodb.user", TEXT, None, "User."),
    Option("mongodb.password", TEXT, None, "Password.", secret=True),
    Option("mongodb.authsource", TEXT, "admin", "Database that knows the user."),
    Option("mongodb.authentication.class", TEXT, None, "Java class.", CONNECT, shared.JVM),
    Option("mongodb.ssl.enabled", FLAG, "false", "Encrypt the connection."),
    Option("mongodb.ssl.invalid.hostname.allowed", FLAG, "false", "Do not compare the certificate with the host name."),
    Option("mongodb.ssl.keystore", TEXT, None, "PEM file with the client's certificate and key."),
    Option("mongodb.ssl.keystore.password", TEXT, None, "Password of the key.", secret=True),
    Option("mongodb.ssl.keystore.type", TEXT, None, "Type of the store.", CONNECT, _JAVA_STORE),
    Option("mongodb.ssl.truststore", TEXT, None, "PEM file with the certificates of authorities."),
    Option("mongodb.ssl.truststore.password", TEXT, None, "Password.", CONNECT, "PEM files have none", secret=True),
    Option("mongodb.ssl.truststore.type", TEXT, None, "Type of the store.", CONNECT, _JAVA_STORE),
    Option("mongodb.connect.timeout.ms", COUNT, "10000", "Time limit for a connection."),
    Option("mongodb.socket.timeout.ms", COUNT, "0", "Time limit for an answer; 0 is none."),
    Option("mongodb.server.selection.timeout.ms", COUNT, "30000", "Time limit for finding a server."),
    Option("mongodb.heartbeat.frequency.ms", COUNT, "10000", "Pause between looks at the servers."),
    Option("mongodb.poll.interval.ms", POSITIVE_LONG, "30000", "Pause.", CONNECT, "the driver watches the servers"),
    Option("connect.max.attempts", COUNT, "16", "Tries.", CONNECT, "use errors.max.retries"),
    Option("connect.backoff.initial.delay.ms", COUNT, "1000", "Pause.", CONNECT, "pauses double from 0.5 s on"),
    Option(
        "connect.backoff.max.delay.ms", COUNT, "120000", "Pause.", CONNECT, "use retriable.restart.connector.wait.ms"
    ),
)
CAPTURE = (
    Option(
        "capture.mode",
        choice(
            "change_streams",
            "change_streams_update_full",
            "change_streams_with_pre_image",
            "change_streams_update_full_with_pre_image",
            OPLOG,
        ),
        "change_streams_update_full",
        "Whether updates have the whole document, and updates and deletes the one before. `oplog` reads the oplog "
        "itself; compat.version is 1.1 then, unless it is given.",
        old_values={
            "change_streams_with_preimage": "change_streams_with_pre_image",
            "change_streams_update_full_with_preimage": "change_streams_update_full_with_pre_image",
        },
    ),
    Option(
        "capture.mode.full.update.type",
        choice("lookup", "post_image"),
        "lookup",
        "Where the whole document of an update comes from: as it is when the change is read, or as the update left it.",
    ),
    Option("capture.scope", choice("deployment", "database", "collection"), "deployment", "What is watched."),
    Option("capture.target", TEXT, None, "The database, or `database.collection`, that is watched."),
    Option(
        FOR_REPLICA,
        FLAG,
        "false",
        "For sinks that keep the content of collections; a replica sets it. Documents that a change does not bring "
        "are looked up, keys are those of the new documents, and collections that are dropped or renamed are followed.",
    ),
    Option("capture.start.op.time", LONG, "-1", "64-bit cluster time at which a pipeline without a snapshot begins."),
    Option(
        "json.serialization.mode",
        choice("legacy", "strict", "relaxed", "extended"),
        "legacy",
        "How documents are written as JSON.",
    ),
    Option(
        "compat.version",
        choice("current", "2.1", "1.1"),
        "current",
        "Shape of records: today's, or that of Debezium 2.1 or 1.1 (schema.name.adjustment.mode is avro then, unless "
        "it is given, and extended.headers.enabled is false).",
    ),
    Option("key.json.mode", choice("relaxed", "strict"), "relaxed", "How keys are written as JSON."),
    Option(
        "cursor.max.await.time.ms", COUNT, "0", "Wait for changes on the server.", CONNECT, "the trigger sets the pace"
    ),
    Option("cursor.pipeline", TEXT, None, "Stages (JSON) that change events go through on the server.", protects=True),
    Option(
        "cursor.pipeline.order",
        choice("internal_first", "user_first", "user_only"),
        "internal_first",
        "Whether these stages come behind the connector's own, before them or alone.",
    ),
    Option(
        "cursor.oversize.handling.mode",
        choice("fail", "skip", "split"),
        "fail",
        "What becomes of change events over 16 MB; `split` takes a server of version 6.0.9 or later.",
    ),
    Option(
        COLUMNS,
        TEXT,
        None,
        "Columns (names and types of Spark's DDL) of collections in the shape `table` and in replicas: "
        "`shop\\.orders: total DECIMAL(10,2), items ARRAY<STRUCT<sku: STRING>>; shop\\.stock: ...`. All other fields "
        "are JSON in the column `_rest`. Without it a replica has a document's JSON, and `table` what a sample shows.",
    ),
    Option(
        "document.sample.size",
        POSITIVE_LONG,
        "1000",
        "Documents whose fields become columns of the shape `table` if none are declared.",
    ),
    Option("cursor.oversize.skip.threshold", COUNT, "0", "Size in bytes from which `skip` leaves a change out."),
)
FILTERS = (
    *shared.lists("database", "Databases"),
    *shared.lists("collection", "Collections (`database.collection`)"),
    Option("filters.match.mode", choice("regex", "literal"), "regex", "What the entries of these lists are."),
    Option(
        "field.exclude.list",
        TEXT,
        None,
        "Fields (`database.collection.field`) that no event has.",
        aliases=(Alias("field.blacklist"),),
        protects=True,
    ),
    Option("field.renames", TEXT, None, "New names of fields (`database.collection.field:name`).", protects=True),
    *shared.EVENT_FILTERS,
)
OUT_OF_RANGE = (
    Option(
        "column.out.of.range.null",
        PATTERNS,
        None,
        "Columns (`database.collection.field`) that are null where a document has a date or decimal that they do not "
        "hold. All columns are: such a value stays in `_rest`.",
    ),
    Option(
        "column.out.of.range.text",
        PATTERNS,
        None,
        "Columns of dates, decimals or strings that are texts instead, which hold every date (ISO 8601) and decimal.",
    ),
)
SNAPSHOT = (
    *_with_names(shared.SNAPSHOT, {"snapshot.max.threads": "initial.sync.max.threads"}),
    Option("snapshot.mode.configuration.based.*", FLAG, None, "Schema flags.", CONNECT, "documents have no schema"),
    Option(OVERRIDES, NAMES, None, "Collections with a filter: only the documents that match are read.", protects=True),
    Option(f"{OVERRIDES}.<collection>", TEXT, None, "The condition (JSON) for these documents.", protects=True),
    Option("snapshot.fetch.size", COUNT, "0", "Documents of a round trip; 0 is the server's choice."),
)
_NO_COLUMNS = "documents have no columns; field.exclude.list and field.renames change them"
_WHOLE = "documents are read whole, as capture.mode says"
EVENTS = without_effect(
    shared.EVENTS,
    {
        "event.converting.failure.handling.mode": "no value of a document is converted",
        "include.schema.comments": "fields of documents have no comments",
        **dict.fromkeys(("converters", "<p>.type"), _NO_COLUMNS),
        **dict.fromkeys(("post.processors", "<p>.reselect."), _WHOLE),
    },
)
BINARY = Option(
    "binary.handling.mode",
    choice("bytes", "base64", "base64-url-safe", "hex"),
    "bytes",
    "How binary data appears.",
    CONNECT,
    "documents are JSON, which has its own form for binary data",
)
OPTIONS = OptionTable(
    {
        "Connection": CONNECTION,
        "Spark": shared.spark("the oplog is not measured in bytes, and a batch is read piece by piece"),
        "Capture": CAPTURE,
        "Filters": FILTERS,
        "Dates and decimals out of range": OUT_OF_RANGE,
        "Snapshot": SNAPSHOT,
        "Events": (*EVENTS, BINARY),
        "Topics": _with_names(shared.TOPICS, {"topic.prefix": "mongodb.name"}),
        "Converters and transforms": shared.CONVERTERS,
        "Signals, notifications, heartbeats": shared.SIGNALS,
        "Operation": shared.RUNTIME,
    }
)


def resolve(properties: Mapping[str, object], checks: Sequence[Check] = ()) -> Config:
    """The checked Config of a MongoDB connector. Raises ConfigError naming every problem, also of `checks`."""
    if str(properties.get("capture.mode", "")).strip().lower() == OPLOG:
        properties = {"compat.version": "1.1", **properties}
    if str(properties.get("compat.version", "current")).strip() != "current":
        properties = {"schema.name.adjustment.mode": "avro", "extended.headers.enabled": "false", **properties}
    return resolution.resolve(_unskipped(_literal(properties)), OPTIONS, (*_CHECKS, *checks), NAMING, elsewhere)


def _named(properties: Mapping[str, object]) -> dict[str, tuple[str, str]]:
    """The given names and values, by the names in their usual form."""
    return {name.lower().replace("_", "."): (name, str(value)) for name, value in properties.items()}


def _unskipped(properties: Mapping[str, object]) -> Mapping[str, object]:
    """The properties; with compat.faults no operation is skipped where the connector's own stages are left out.

    Debezium: the stages alone skip them (MongoDbConnectorConfig.supportsOperationFiltering).
    """
    given = _named(properties)
    wanted = {"compat.faults": "true", "cursor.pipeline.order": "user_only"}
    if any(given.get(name, ("", ""))[1].strip().lower() != value for name, value in wanted.items()):
        return properties
    kept = {name: value for name, value in properties.items() if name != given.get("skipped.operations", ("",))[0]}
    return {**kept, "skipped.operations": "none"}


def _literal(properties: Mapping[str, object]) -> Mapping[str, object]:
    """The lists of filters.match.mode=literal as the expressions of these names.

    What is excluded is so in any case. Debezium: Predicates.excludesLiterals; the server includes by the exact names.
    """
    given = _named(properties)
    if given.get("filters.match.mode", ("", ""))[1].strip().lower() != "literal":
        return properties
    found = dict(properties)
    for list_ in _LISTS:
        name, text = given.get(list_, ("", ""))
        names = [each.strip() for each in text.split(",")] if text.strip() else []
        if names and not all(names):
            raise ConfigError(f"{list_} contains empty values", where=list_)
        if names:
            form = "{}" if ".exclude." in list_ else "(?-i:{})"
            found[name] = ",".join(form.format(re.escape(each)) for each in names)
    return found


def is_for_replica(config: Config) -> bool:
    """Whether the changes are for a sink that keeps the content of collections."""
    return config.flag(FOR_REPLICA)


def stages(config: Config) -> list[object]:
    """The stages of cursor.pipeline. Raises ValueError."""
    found = loads(config.optional("cursor.pipeline") or "[]")
    if not isinstance(found, list) or not all(isinstance(stage, dict) for stage in found):
        raise ValueError("it is no list of stages")
    return found


def condition(text: str | None) -> dict[str, object]:
    """A condition on documents from its JSON text, as the shell reads it. Raises ValueError."""
    found = loads(text or "{}")
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    return found


def conditions(config: Config) -> dict[str, str]:
    """The conditions of snapshot.collection.filter.overrides by collection."""
    given = {name.lower(): str(value) for name, value in config.values.items() if value is not None}
    listed = config.names(OVERRIDES)
    return {name: given[f"{OVERRIDES}.{name}".lower()] for name in listed if f"{OVERRIDES}.{name}".lower() in given}


def _check_capture(config: Config) -> Iterator[Problem]:
    scope, target = config.text("capture.scope"), config.optional("capture.target") or ""
    if scope != "deployment" and not target:
        yield Problem("capture.target", "capture.target property is missing", f"capture.scope is {scope}")
    elif scope == "collection" and not re.fullmatch(r"[^.]+\..+", target):
        yield Problem("capture.target", "a database and a collection are expected", "write database.collection")
    if config.text("cursor.oversize.handling.mode") == "skip" and not config.number("cursor.oversize.skip.threshold"):
        yield Problem("cursor.oversize.skip.threshold", "Invalid threshold value for skipped document size")
    if config.text("capture.mode") == OPLOG and config.optional("cursor.pipeline"):
        remedy = "leave it out, or use a change stream (capture.mode=change_streams_update_full)"
        yield Problem("cursor.pipeline", "the oplog is read without stages", remedy)
    try:
        stages(config)
    except ValueError as error:
        yield Problem("cursor.pipeline", f"Change stream pipeline JSON is invalid: {error}")
    try:
        parse_rules(config.optional("field.exclude.list"), config.optional("field.renames"))
    except ConfigError as error:
        yield Problem(error.where or "field.exclude.list", error.what)


def _check_overrides(config: Config) -> Iterator[Problem]:
    given = conditions(config)
    for name in config.names(OVERRIDES):
        if name not in given:
            yield Problem(f"{OVERRIDES}.{name}", "A value is required", f"{OVERRIDES} lists the collection")
            continue
        try:
            condition(given[name])
        except (ValueError, json.JSONDecodeError) as error:
            yield Problem(f"{OVERRIDES}.{name}", f"The condition is invalid: {error}")


def _check_columns(config: Config) -> Iterator[Problem]:
    try:
        parse_declarations(config.optional(COLUMNS))
    except ConfigError as error:
        yield Problem(COLUMNS, error.what, error.remedy)


_CHECKS = (
    _check_columns,
    shared.check_together,
    check_signal_table,
    _check_capture,
    _check_overrides,
)
