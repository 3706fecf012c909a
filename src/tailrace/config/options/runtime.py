"""The properties of operation: retries, lineage, and those of Kafka Connect that have no effect."""

from __future__ import annotations

from tailrace.config.kinds import (
    COUNT,
    FLAG,
    INT,
    LONG,
    LONG_COUNT,
    NAMES,
    PATTERN,
    POSITIVE_INT,
    POSITIVE_LONG,
    TEXT,
    choice,
    optional,
)
from tailrace.config.option import JVM, Option, OptionStatus

CONNECT = OptionStatus.CONNECT

_QUEUE = "Spark plans the batches"
_ONCE = "set requested: the sink decides, and that of Kafka is exactly once unless its `delivery` says otherwise"
_METRICS = "there are no JMX metrics; `tailrace run --http` serves their names, without quantiles and tags"
_FAULTY = "a faulty record stops the pipeline and is never skipped"
_SKIP = "remove it; event.processing.failure.handling.mode=warn skips and logs changes that cannot be read"
_ASIDE = "remove it; the sink replica sets tables aside that it cannot write (on_error), and no sink has such a topic"
RUNTIME = (
    NAME := Option("name", optional(TEXT), None, "Name of the connector."),
    ERRORS_MAX_RETRIES := Option("errors.max.retries", INT, "-1", "Retries after a transient error; -1 is no limit."),
    RETRIABLE_RESTART_CONNECTOR_WAIT_MS := Option(
        "retriable.restart.connector.wait.ms", LONG_COUNT, "10000", "Pause before a retry."
    ),
    Option("tasks.max", POSITIVE_INT, "1", "Tasks.", CONNECT, "Spark plans the tasks"),
    MAX_BATCH_SIZE := Option("max.batch.size", POSITIVE_INT, "2048", "Events of a batch.", CONNECT, _QUEUE),
    MAX_QUEUE_SIZE := Option("max.queue.size", INT, "8192", "Events in the queue.", CONNECT, _QUEUE),
    Option("max.queue.size.in.bytes", LONG, "0", "Bytes in the queue.", CONNECT, _QUEUE),
    Option("queue.provider.type", optional(TEXT), None, "Java class.", CONNECT, JVM),
    Option("poll.interval.ms", POSITIVE_LONG, "500", "Pause of an idle poll.", CONNECT, "the trigger sets the pace"),
    Option("poll.dispatch.interval.ms", LONG_COUNT, "0", "Pause to collect.", CONNECT, "the trigger sets the pace"),
    Option("query.fetch.size", COUNT, "0", "Rows for each round trip.", CONNECT, "the log is streamed"),
    CONNECTION_VALIDATION_TIMEOUT_MS := Option(
        "connection.validation.timeout.ms", POSITIVE_LONG, "60000", "Time limit for `tailrace check`."
    ),
    Option("executor.shutdown.timeout.ms", LONG_COUNT, "4000", "Limit of a stop.", CONNECT, "Spark stops the query"),
    Option("statistics.metrics.enabled", FLAG, "true", "Quantiles of metrics.", CONNECT, _METRICS),
    Option("custom.metric.tags", optional(TEXT), None, "Tags of metrics.", CONNECT, _METRICS),
    CUSTOM_SANITIZE_PATTERN := Option(
        "custom.sanitize.pattern",
        optional(PATTERN),
        None,
        "Names of properties whose values are masked in logs and texts.",
        protects=True,
    ),
    INTERNAL_CUSTOM_RETRIABLE_EXCEPTION := Option(
        "internal.custom.retriable.exception",
        optional(PATTERN),
        None,
        "Errors that are retried like transient ones: an expression that matches the whole message.",
    ),
    OPENLINEAGE_INTEGRATION_ENABLED := Option(
        "openlineage.integration.enabled", FLAG, "false", "Lineage events of `tailrace run` to OpenLineage."
    ),
    OPENLINEAGE_INTEGRATION_CONFIG_FILE_PATH := Option(
        "openlineage.integration.config.file.path", optional(TEXT), None, "The YAML file of OpenLineage's client."
    ),
    OPENLINEAGE_INTEGRATION_JOB_NAMESPACE := Option(
        "openlineage.integration.job.namespace", optional(TEXT), None, "The job's namespace; `topic.prefix` by default."
    ),
    OPENLINEAGE_INTEGRATION_JOB_DESCRIPTION := Option(
        "openlineage.integration.job.description", optional(TEXT), None, "The job's description."
    ),
    OPENLINEAGE_INTEGRATION_JOB_TAGS := Option(
        "openlineage.integration.job.tags", NAMES, None, "The job's tags, as `name=value,...`."
    ),
    OPENLINEAGE_INTEGRATION_JOB_OWNERS := Option(
        "openlineage.integration.job.owners", NAMES, None, "The job's owners, as `name=type,...`."
    ),
    Option("openlineage.integration.*", TEXT, None, "Their other settings.", CONNECT, "the client's file has them"),
    Option("offset.*", TEXT, None, "Offset storage.", CONNECT, "Spark's checkpoint contains the offset"),
    Option("offset.storage", optional(TEXT), None, "Offset store.", CONNECT, "Spark's checkpoint contains the offset"),
    Option("schema.history.internal", optional(TEXT), None, "History store.", CONNECT, "the log has the schemas"),
    Option("schema.history.internal.*", TEXT, None, "History store.", CONNECT, "the log has the schemas"),
    Option("database.history.*", TEXT, None, "History store.", CONNECT, "the log has the schemas"),
    Option("errors.tolerance", TEXT, "none", "Skip faulty records.", CONNECT, _FAULTY, instead=_SKIP),
    Option("errors.deadletterqueue.*", TEXT, None, "Topic of those.", CONNECT, _FAULTY, instead=_ASIDE),
    Option("errors.*", TEXT, None, "Connect's error handling.", CONNECT, _FAULTY),
    TOPIC_CREATION := Option(
        "topic.creation.*",
        TEXT,
        None,
        "How the sink `kafka` of a pipeline creates topics: `default.partitions`, `default.replication.factor`, "
        "configurations of topics, and `groups` with `include` and `exclude`.",
    ),
    Option("producer.override.*", TEXT, None, "Connect's producer.", CONNECT, "set the sink's own options"),
    Option(
        "exactly.once.support",
        optional(choice("requested", refused={"required": _ONCE})),
        None,
        "Connect's guarantee.",
        CONNECT,
        "the sink decides",
    ),
    Option(
        "config.action.reload",
        optional(TEXT),
        None,
        "Connect's reload.",
        CONNECT,
        "a changed configuration needs a restart",
    ),
)
