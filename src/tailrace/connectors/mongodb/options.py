"""The properties of the MongoDB connector: each is an object, by which a Config gives its value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tailrace.config import shared
from tailrace.config.kinds import COUNT, FLAG, LONG, NAMES, PATTERNS, POSITIVE_LONG, TEXT, choice, optional
from tailrace.config.option import JVM, Alias, Option, OptionStatus, OptionTable, without_effect
from tailrace.config.options.filters import COLLECTIONS, DATABASES
from tailrace.connectors.mongodb.declared import OPTION as COLUMNS
from tailrace.model.table_id import DATABASE_TABLE, TableNaming

CONNECT = OptionStatus.CONNECT
CLASS = "io.debezium.connector.mongodb.MongoDbConnector"
OVERRIDES = "snapshot.collection.filter.overrides"
NAMING = TableNaming(DATABASE_TABLE, system_schemas="", system_tables=())
SYSTEM_DATABASES = ("admin", "config", "local")
LISTS = tuple(f"{kind}.{side}.list" for kind in ("database", "collection") for side in ("include", "exclude"))
OPLOG, REQUIRED, POST_IMAGE_REQUIRED = "oplog", "required", "post_image_required"
_JAVA_STORE = "give a PEM file; PKCS12 is converted by `openssl pkcs12 -in store.p12 -out store.pem -nodes`"

_ONE_SET = "mongodb.connection.string names the whole deployment: a replica set, or mongos"
_MODE = choice("sharded", refused={"replica_set": _ONE_SET})


def _address_of(hosts: str) -> str:
    """The connection string of `mongodb.hosts`: `rs0/host:port,host:port`, or hosts alone."""
    name, slash, listed = hosts.strip().rpartition("/")
    return f"mongodb://{listed}/" + (f"?replicaSet={name}" if slash and name else "")


def _with_names(options: Iterable[Option[object]], names: Mapping[str, str]) -> tuple[Option[object], ...]:
    """The options. Some also have a name of Debezium 1."""
    return tuple(
        replace(each, aliases=(*each.aliases, Alias(names[each.name]))) if each.name in names else each
        for each in options
    )


CONNECTION = (
    Option("connector.class", optional(choice(CLASS)), None, "Class of the connector."),
    MONGODB_CONNECTION_STRING := Option(
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
        optional(choice("sharded", refused={"replica_set": _ONE_SET})),
        None,
        "Removed.",
        CONNECT,
        _ONE_SET,
    ),
    Option(
        "mongodb.connection.string.shard.params",
        optional(TEXT),
        None,
        "Parameters of shards.",
        OptionStatus.REFUSED,
        _ONE_SET,
    ),
    MONGODB_USER := Option("mongodb.user", optional(TEXT), None, "User."),
    MONGODB_PASSWORD := Option("mongodb.password", optional(TEXT), None, "Password.", secret=True),
    MONGODB_AUTHSOURCE := Option("mongodb.authsource", TEXT, "admin", "Database that knows the user."),
    Option("mongodb.authentication.class", optional(TEXT), None, "Java class.", CONNECT, JVM),
    MONGODB_SSL_ENABLED := Option("mongodb.ssl.enabled", FLAG, "false", "Encrypt the connection."),
    MONGODB_SSL_INVALID_HOSTNAME_ALLOWED := Option(
        "mongodb.ssl.invalid.hostname.allowed", FLAG, "false", "Do not compare the certificate with the host name."
    ),
    MONGODB_SSL_KEYSTORE := Option(
        "mongodb.ssl.keystore", optional(TEXT), None, "PEM file with the client's certificate and key."
    ),
    MONGODB_SSL_KEYSTORE_PASSWORD := Option(
        "mongodb.ssl.keystore.password", optional(TEXT), None, "Password of the key.", secret=True
    ),
    Option("mongodb.ssl.keystore.type", optional(TEXT), None, "Type of the store.", CONNECT, _JAVA_STORE),
    MONGODB_SSL_TRUSTSTORE := Option(
        "mongodb.ssl.truststore", optional(TEXT), None, "PEM file with the certificates of authorities."
    ),
    Option(
        "mongodb.ssl.truststore.password",
        optional(TEXT),
        None,
        "Password.",
        CONNECT,
        "PEM files have none",
        secret=True,
    ),
    Option("mongodb.ssl.truststore.type", optional(TEXT), None, "Type of the store.", CONNECT, _JAVA_STORE),
    MONGODB_CONNECT_TIMEOUT_MS := Option("mongodb.connect.timeout.ms", COUNT, "10000", "Time limit for a connection."),
    MONGODB_SOCKET_TIMEOUT_MS := Option(
        "mongodb.socket.timeout.ms", COUNT, "0", "Time limit for an answer; 0 is none."
    ),
    MONGODB_SERVER_SELECTION_TIMEOUT_MS := Option(
        "mongodb.server.selection.timeout.ms", COUNT, "30000", "Time limit for finding a server."
    ),
    MONGODB_HEARTBEAT_FREQUENCY_MS := Option(
        "mongodb.heartbeat.frequency.ms", COUNT, "10000", "Pause between looks at the servers."
    ),
    Option("mongodb.poll.interval.ms", POSITIVE_LONG, "30000", "Pause.", CONNECT, "the driver watches the servers"),
    Option("connect.max.attempts", COUNT, "16", "Tries.", CONNECT, "use errors.max.retries"),
    Option("connect.backoff.initial.delay.ms", COUNT, "1000", "Pause.", CONNECT, "pauses double from 0.5 s on"),
    Option(
        "connect.backoff.max.delay.ms", COUNT, "120000", "Pause.", CONNECT, "use retriable.restart.connector.wait.ms"
    ),
)
CAPTURE = (
    CAPTURE_MODE := Option(
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
    CAPTURE_MODE_FULL_UPDATE_TYPE := Option(
        "capture.mode.full.update.type",
        choice("lookup", "post_image", POST_IMAGE_REQUIRED),
        "lookup",
        "Where the whole document of an update comes from: as it is when the change is read, or as the update left it. "
        "With post_image_required an update without that is an error, otherwise it has none.",
    ),
    CAPTURE_MODE_PRE_IMAGE := Option(
        "capture.mode.pre.image",
        choice("when_available", REQUIRED),
        "when_available",
        "Whether a change without the document before it is an error, in a capture.mode with pre-images.",
    ),
    CAPTURE_SCOPE := Option(
        "capture.scope", choice("deployment", "database", "collection"), "deployment", "What is watched."
    ),
    CAPTURE_TARGET := Option(
        "capture.target", optional(TEXT), None, "The database, or `database.collection`, that is watched."
    ),
    CAPTURE_FOR_REPLICA := Option(
        "capture.for.replica",
        FLAG,
        "false",
        "For sinks that keep the content of collections; a replica sets it. Documents that a change does not bring "
        "are looked up, keys are those of the new documents, and collections that are dropped or renamed are followed.",
    ),
    CAPTURE_START_OP_TIME := Option(
        "capture.start.op.time", LONG, "-1", "64-bit cluster time at which a pipeline without a snapshot begins."
    ),
    JSON_SERIALIZATION_MODE := Option(
        "json.serialization.mode",
        choice("legacy", "strict", "relaxed", "extended"),
        "legacy",
        "How documents are written as JSON.",
    ),
    COMPAT_VERSION := Option(
        "compat.version",
        choice("current", "2.1", "1.1"),
        "current",
        "Shape of records: today's, or that of Debezium 2.1 or 1.1 (schema.name.adjustment.mode is avro then, unless "
        "it is given, and extended.headers.enabled is false).",
    ),
    KEY_JSON_MODE := Option("key.json.mode", choice("relaxed", "strict"), "relaxed", "How keys are written as JSON."),
    Option(
        "cursor.max.await.time.ms", COUNT, "0", "Wait for changes on the server.", CONNECT, "the trigger sets the pace"
    ),
    CURSOR_PIPELINE := Option(
        "cursor.pipeline",
        optional(TEXT),
        None,
        "Stages (JSON) that change events go through on the server.",
        protects=True,
    ),
    CURSOR_PIPELINE_ORDER := Option(
        "cursor.pipeline.order",
        choice("internal_first", "user_first", "user_only"),
        "internal_first",
        "Whether these stages come behind the connector's own, before them or alone.",
    ),
    CURSOR_OVERSIZE_HANDLING_MODE := Option(
        "cursor.oversize.handling.mode",
        choice("fail", "skip", "split"),
        "fail",
        "What becomes of change events over 16 MB; `split` takes a server of version 6.0.9 or later.",
    ),
    DOCUMENT_COLUMNS := Option(
        COLUMNS,
        optional(TEXT),
        None,
        "Columns (names and types of Spark's DDL) of collections in the shape `table` and in replicas: "
        "`shop\\.orders: total DECIMAL(10,2), items ARRAY<STRUCT<sku: STRING>>; shop\\.stock: ...`. All other fields "
        "are JSON in the column `_rest`. Without it a replica has a document's JSON, and `table` what a sample shows.",
    ),
    DOCUMENT_SAMPLE_SIZE := Option(
        "document.sample.size",
        POSITIVE_LONG,
        "1000",
        "Documents whose fields become columns of the shape `table` if none are declared.",
    ),
    CURSOR_OVERSIZE_SKIP_THRESHOLD := Option(
        "cursor.oversize.skip.threshold", COUNT, "0", "Size in bytes from which `skip` leaves a change out."
    ),
)
FILTERS = (
    *DATABASES,
    *COLLECTIONS,
    FILTERS_MATCH_MODE := Option(
        "filters.match.mode", choice("regex", "literal"), "regex", "What the entries of these lists are."
    ),
    FIELD_EXCLUDE_LIST := Option(
        "field.exclude.list",
        optional(TEXT),
        None,
        "Fields (`database.collection.field`) that no event has.",
        aliases=(Alias("field.blacklist"),),
        protects=True,
        counterpart="column.exclude.list",
    ),
    FIELD_RENAMES := Option(
        "field.renames", optional(TEXT), None, "New names of fields (`database.collection.field:name`).", protects=True
    ),
    *shared.EVENT_FILTERS,
)
OUT_OF_RANGE = (
    COLUMN_OUT_OF_RANGE_NULL := Option(
        "column.out.of.range.null",
        PATTERNS,
        None,
        "Columns (`database.collection.field`) that are null where a document has a date or decimal that they do not "
        "hold. All columns are: such a value stays in `_rest`.",
    ),
    COLUMN_OUT_OF_RANGE_TEXT := Option(
        "column.out.of.range.text",
        PATTERNS,
        None,
        "Columns of dates, decimals or strings that are texts instead, which hold every date (ISO 8601) and decimal.",
    ),
)
SNAPSHOT = (
    *_with_names(shared.SNAPSHOT, {"snapshot.max.threads": "initial.sync.max.threads"}),
    Option("snapshot.mode.configuration.based.*", FLAG, None, "Schema flags.", CONNECT, "documents have no schema"),
    SNAPSHOT_COLLECTION_FILTER_OVERRIDES := Option(
        OVERRIDES, NAMES, None, "Collections with a filter: only the documents that match are read.", protects=True
    ),
    SNAPSHOT_COLLECTION_FILTER_OVERRIDES_COLLECTION := Option(
        f"{OVERRIDES}.<collection>", TEXT, None, "The condition (JSON) for these documents.", protects=True
    ),
    SNAPSHOT_FETCH_SIZE := Option(
        "snapshot.fetch.size", COUNT, "0", "Documents of a round trip; 0 is the server's choice."
    ),
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
