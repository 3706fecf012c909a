"""The properties of snapshots, signals, notifications and heartbeats that every connector has."""

from __future__ import annotations

from tailrace.config.kinds import (
    COUNT,
    FLAG,
    LONG_COUNT,
    NAMES,
    PATTERNS,
    POSITIVE_INT,
    POSITIVE_LONG,
    TEXT,
    choice,
    listed,
    matching,
    optional,
)
from tailrace.config.option import Option, OptionStatus
from tailrace.config.plugin_groups import SNAPSHOTTERS

CONNECT = OptionStatus.CONNECT
_CHANNELS = listed("source", "kafka", "file", "in-process", refused={"jmx": "use `tailrace signal`"})


def snapshot_mode(*more: str, meaning: str = "") -> Option[str]:
    """The property `snapshot.mode` of a connector that has `more` modes than the others."""
    return Option(
        "snapshot.mode",
        choice(
            *("initial", "no_data", "initial_only", "always", "when_needed", "configuration_based", "custom", *more),
        ),
        "initial",
        "Whether the rows there are come before the changes: once, not at all, alone, at each start, or again when the "
        f"position is lost.{meaning}",
        old_values={"never": "no_data", "exported": "initial", "schema_only": "no_data"},
    )


SNAPSHOT = (
    SNAPSHOT_MODE := snapshot_mode(),
    SNAPSHOT_INCLUDE_COLLECTION_LIST := Option(
        "snapshot.include.collection.list",
        PATTERNS,
        None,
        "Captured tables that the snapshot reads; all by default.",
        protects=True,
    ),
    BASED_SNAPSHOT_DATA := Option(
        "snapshot.mode.configuration.based.snapshot.data", FLAG, "false", "Read the tables at each start."
    ),
    BASED_START_STREAM := Option("snapshot.mode.configuration.based.start.stream", FLAG, "false", "Read the log."),
    BASED_SNAPSHOT_ON_DATA_ERROR := Option(
        "snapshot.mode.configuration.based.snapshot.on.data.error", FLAG, "false", "Read them if the position is lost."
    ),
    SNAPSHOT_MODE_CUSTOM_NAME := Option(
        "snapshot.mode.custom.name", optional(TEXT), None, f"Entry point of `{SNAPSHOTTERS}`, for `custom`."
    ),
    OFFSET_TAKEOVER := Option(
        "offset.takeover",
        optional(TEXT),
        None,
        "Debezium's offset, from which a new pipeline continues with snapshot.mode=no_data: a file, or the text, as "
        "Kafka Connect shows it.",
    ),
    SNAPSHOT_DELAY_MS := Option("snapshot.delay.ms", LONG_COUNT, "0", "Wait before the snapshot."),
    STREAMING_DELAY_MS := Option("streaming.delay.ms", LONG_COUNT, "0", "Wait after the snapshot."),
    SNAPSHOT_MAX_THREADS := Option(
        "snapshot.max.threads",
        POSITIVE_INT,
        "1",
        "Splits at once: the most a micro-batch of the first snapshot has, where this is given.",
    ),
    SNAPSHOT_MAX_THREADS_MULTIPLIER := Option(
        "snapshot.max.threads.multiplier",
        POSITIVE_INT,
        "1",
        "A table is cut into this many ranges times snapshot.max.threads, not into ranges of 64 MB.",
    ),
    SNAPSHOT_MAX_THREADS_MULTIPLIER_TABLE := Option(
        "snapshot.max.threads.multiplier.<table>", POSITIVE_INT, None, "The same for one table."
    ),
)

_PLANNED = "signals are read while a batch is planned"
_NO_JMX = "use sink, log, file, callback or http"
SIGNALS = (
    SIGNAL_DATA_COLLECTION := Option("signal.data.collection", NAMES, None, "Signal table (`schema.table`)."),
    SIGNAL_ENABLED_CHANNELS := Option(
        "signal.enabled.channels",
        _CHANNELS,
        "source",
        "Channels read for signals: source, kafka, file. Those of `tailrace signal` (in-process) are always read.",
    ),
    SIGNAL_FOLDER := Option(
        "signal.folder",
        optional(TEXT),
        None,
        "Folder of `tailrace signal`; a pipeline's is `signals` in its checkpoint.",
    ),
    SIGNAL_POLL_INTERVAL_MS := Option(
        "signal.poll.interval.ms", POSITIVE_LONG, "5000", "Pause between reads of channels other than the table."
    ),
    SIGNAL_EMIT_FAILURE_MAX_RETRIES := Option(
        "signal.emit.failure.max.retries", COUNT, "0", "Retries if writing a window's row fails."
    ),
    SIGNAL_EMIT_FAILURE_BACKOFF_MS := Option(
        "signal.emit.failure.backoff.ms", LONG_COUNT, "10000", "Pause between them."
    ),
    Option("signal.processor.semaphore.wait.ms", optional(LONG_COUNT), None, "A pause.", CONNECT, _PLANNED),
    Option("signal.synchronous.batch.size", optional(COUNT), None, "Size of a batch.", CONNECT, _PLANNED),
    SIGNAL_KAFKA_TOPIC := Option(
        "signal.kafka.topic", optional(TEXT), None, "Signal topic, partition 0; `<topic.prefix>-signal` by default."
    ),
    SIGNAL_KAFKA_BOOTSTRAP_SERVERS := Option(
        "signal.kafka.bootstrap.servers", optional(TEXT), None, "Kafka of the signal topic."
    ),
    SIGNAL_KAFKA_GROUP_ID := Option(
        "signal.kafka.groupId", TEXT, "kafka-signal", "Its consumer group: where the first start begins."
    ),
    SIGNAL_KAFKA_POLL_TIMEOUT_MS := Option(
        "signal.kafka.poll.timeout.ms", COUNT, "100", "Time limit for a read of the signal topic."
    ),
    SIGNAL_CONSUMER := Option(
        "signal.consumer.*", TEXT, None, "Settings of the signal topic's consumer, by librdkafka's names."
    ),
    SIGNAL_FILE := Option(
        "signal.file", TEXT, "file-signals.txt", "Signal file: a JSON object on each line, emptied when read."
    ),
    NOTIFICATION_ENABLED_CHANNELS := Option(
        "notification.enabled.channels",
        listed("sink", "log", "file", "callback", "http", refused={"jmx": _NO_JMX}),
        None,
        "Channels that get notifications: sink, log, file, callback, http.",
    ),
    NOTIFICATION_SINK_TOPIC_NAME := Option(
        "notification.sink.topic.name", optional(TEXT), None, "Topic of the sink channel."
    ),
    NOTIFICATION_FILE := Option(
        "notification.file", optional(TEXT), None, "File of the file channel; a JSON line is appended."
    ),
    NOTIFICATION_CALLBACK := Option(
        "notification.callback",
        optional(
            matching("package.module:function", r"[\w.]+:[\w.]+", "A function is expected, as package.module:function")
        ),
        None,
        "Python function of the callback channel, called with each notification, a dict.",
    ),
    NOTIFICATION_HTTP_URL := Option(
        "notification.http.url",
        optional(matching("http(s) URL", r"https?://[^/\s?#@]+([/?]\S*)?", "An http(s) URL with a host is expected")),
        None,
        "Address to which the http channel POSTs each notification as JSON.",
        secret=True,
    ),
    NOTIFICATION_HTTP_RETRIES := Option(
        "notification.http.retries", COUNT, "2", "Retries of a POST; COMPLETED, ABORTED, SKIPPED have 3 or more."
    ),
    NOTIFICATION_HTTP_TIMEOUT_MS := Option(
        "notification.http.timeout.ms", POSITIVE_INT, "5000", "Time limit for connecting, sending and reading."
    ),
    NOTIFICATION_HTTP_ALLOW_PRIVATE_NETWORKS := Option(
        "notification.http.allow.private.networks", FLAG, "false", "Post to this machine and private networks."
    ),
    HEARTBEAT_INTERVAL_MS := Option(
        "heartbeat.interval.ms", COUNT, "0", "Pause between heartbeats; 0 is no heartbeats."
    ),
    HEARTBEAT_ACTION_QUERY := Option(
        "heartbeat.action.query", optional(TEXT), None, "Statement run before each heartbeat."
    ),
    INCREMENTAL_SNAPSHOT_CHUNK_SIZE := Option(
        "incremental.snapshot.chunk.size",
        POSITIVE_INT,
        "1024",
        "Rows of a chunk. If it is not set, chunks begin with the default and grow or shrink to a second of reading.",
    ),
    INCREMENTAL_SNAPSHOT_WATERMARKING_STRATEGY := Option(
        "incremental.snapshot.watermarking.strategy",
        choice("insert_insert", "insert_delete"),
        "insert_insert",
        "How the signal table marks a window.",
    ),
    Option(
        "incremental.snapshot.allow.schema.changes",
        FLAG,
        "false",
        "Schema changes meanwhile.",
        CONNECT,
        "always allowed: each chunk has the columns that the table has when the chunk is read",
    ),
    TABLE_WATCH_INTERVAL_MS := Option(
        "table.watch.interval.ms",
        LONG_COUNT,
        "0",
        "Pause between comparisons of the catalogue with what the log says of the captured tables, for sinks that keep "
        "their content; 0 is none. A replica's default is 5000.",
    ),
    READ_AGAIN_ROWS_PER_SECOND := Option(
        "read.again.rows.per.second",
        LONG_COUNT,
        "0",
        "Most rows a second that are read of a table which a replica reads again; 0 is as many as can be read.",
    ),
    READ_ONLY := Option("read.only", FLAG, "false", "Incremental snapshots without a write to the source."),
)
