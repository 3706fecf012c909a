"""The properties that do not depend on the database, in the groups of the reference page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec

from tailrace.config import entrypoints
from tailrace.config.cloud_event_options import check_cloud_events
from tailrace.config.converter_options import check_addresses, converters
from tailrace.config.kinds import (
    ADDRESS,
    BYTE_SIZE,
    COUNT,
    FLAG,
    INT,
    KEY_COLUMNS,
    LONG,
    LONG_COUNT,
    NAMES,
    OPERATIONS,
    PATTERN,
    PATTERNS,
    POSITIVE_INT,
    POSITIVE_LONG,
    TEXT,
    choice,
)
from tailrace.config.option import Alias, Option, Status
from tailrace.config.resolve import Config, Problem

# Re-exported: groups like those below.
from tailrace.config.snapshot_options import SIGNALS as SIGNALS
from tailrace.config.snapshot_options import SNAPSHOT as SNAPSHOT
from tailrace.config.snapshot_options import snapshot_mode as snapshot_mode

CONNECT, REFUSED = Status.CONNECT, Status.REFUSED

_NAMING = "io.debezium.schema."
_ADJUSTMENT = choice("none", "avro", "avro_unicode")
JVM = "Java classes cannot be loaded"
_QUEUE = "Spark plans the batches"
_FACTORY = choice("io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory", otherwise=JVM)
_ONCE = "set requested: the sink decides, and that of Kafka is exactly once unless its `delivery` says otherwise"
_MASKED = "schema.table.column"
_METRICS = "there are no JMX metrics; `tailrace run --http` serves their names, without quantiles and tags"

SPARK = (
    Option(
        "shape",
        choice("kafka", "event", "table", "arrow", "count"),
        "kafka",
        "What a row of the stream is: a Kafka record, an event, a row image of one table, a batch of changes, or a "
        "number of records.",
    ),
    Option(
        "event.decimal.format",
        choice("number", "text", "base64"),
        "number",
        "Decimals in the shape `event`: JSON numbers, JSON strings, or base64 of the unscaled value.",
    ),
    Option("maxBytesPerTrigger", BYTE_SIZE, "268435456", "Most bytes of log that a micro-batch reads."),
    Option(
        "tailrace.properties",
        TEXT,
        None,
        "All properties as one JSON object, for names whose case matters: Spark's options fold it.",
    ),
    Option("compat.faults", FLAG, "false", "Reproduce the faults of the reference engine that are fixed by default."),
)


def spark(why: str) -> tuple[Option, ...]:
    """The properties of a source whose log is not measured in bytes; `why` says what else limits a micro-batch."""
    return tuple(
        replace(each, status=CONNECT, note=why) if each.name == "maxBytesPerTrigger" else each for each in SPARK
    )


TOPICS = (
    Option(
        "topic.prefix",
        ADDRESS,
        None,
        "Logical name of the source: first part of every topic, `source.name` of every event.",
        required=True,
        aliases=(Alias("database.server.name"),),
    ),
    Option("topic.delimiter", ADDRESS, ".", "Between the parts of a topic name."),
    Option("topic.transaction", ADDRESS, "transaction", "Last part of the transaction topic."),
    Option(
        "topic.naming.strategy",
        choice(
            *(
                f"{_NAMING}{name}TopicNamingStrategy"
                for name in ("Schema", "SchemaUnicode", "SchemaRegex", "Default", "DefaultUnicode", "DefaultRegex")
            ),
            otherwise=JVM,
        ),
        f"{_NAMING}SchemaTopicNamingStrategy",
        "How topics are named.",
    ),
    Option("topic.regex.enable", FLAG, "false", "Route by topic.regex.", CONNECT, "the naming strategy decides"),
    Option("topic.regex", PATTERN, None, "Expression of the regex naming strategies."),
    Option("topic.replacement", TEXT, None, "Replacement for topic.regex."),
    Option("topic.key.enforce.uniqueness", FLAG, "true", "Regex naming strategies add the table's name to keys."),
    Option("topic.key.field.name", TEXT, "__dbz__physicalTableIdentifier", "Name of that field of keys."),
    Option("topic.key.field.regex", PATTERN, None, "Expression that the table's name in that field must match."),
    Option("topic.key.field.replacement", TEXT, None, "Replacement for topic.key.field.regex."),
    Option("topic.cache.size", INT, "10000", "Number of cached names.", CONNECT, "names are computed once a batch"),
    Option(
        "topic.heartbeat.prefix",
        ADDRESS,
        "__debezium-heartbeat",
        "First part of the heartbeat topic.",
        aliases=(Alias("heartbeat.topics.prefix"),),
    ),
    Option("topic.heartbeat.name", ADDRESS, None, "Full name of the heartbeat topic."),
    Option(
        "include.schema.changes",
        FLAG,
        "true",
        "Send records of schema changes to the topic `<topic.prefix>`, if the server reports schema changes.",
    ),
)


def lists(kind: str, matched: str) -> Iterator[Option]:
    """An include and an exclude list with their old names."""
    include, exclude = f"{kind}.include.list", f"{kind}.exclude.list"
    yield Option(
        include, PATTERNS, None, f"{matched} to capture.", aliases=(Alias(f"{kind}.whitelist"),), protects=True
    )
    yield Option(
        exclude,
        PATTERNS,
        None,
        f"{matched} to leave out.",
        aliases=(Alias(f"{kind}.blacklist"),),
        excluded_by=include,
        protects=True,
    )


EVENT_FILTERS = (
    Option(
        "skipped.operations",
        OPERATIONS,
        "t",
        "Operations that give no event.",
        aliases=(Alias("truncate.handling.mode", {"include": "none", "skip": "t"}),),
        protects=True,
    ),
    Option("skip.messages.without.change", FLAG, "false", "Leave out updates that change no captured column."),
    Option("tombstones.on.delete", FLAG, "true", "A tombstone follows each delete."),
    Option("guardrail.collections.max", COUNT, "0", "Most tables that may be captured; 0 is no limit."),
    Option("guardrail.collections.limit.action", choice("warn", "fail"), "warn", "What to do beyond it."),
)

FILTERS = (
    *lists("schema", "Schemas"),
    *lists("table", "Tables (`schema.table`)"),
    *lists("column", "Columns of values (`schema.table.column`)"),
    Option("table.ignore.builtin", FLAG, "true", "Never capture the system's own tables."),
    Option(
        "message.key.columns", KEY_COLUMNS, None, "Key columns by table, instead of the primary key.", protects=True
    ),
    *EVENT_FILTERS,
)

MASKS = (
    Option("column.truncate.to.<n>.chars", PATTERNS, None, f"Cut text ({_MASKED}).", protects=True),
    Option("column.mask.with.<n>.chars", PATTERNS, None, f"Replace text by asterisks ({_MASKED}).", protects=True),
    Option(
        "column.mask.hash.<alg>.with.salt.<salt>",
        PATTERNS,
        None,
        f"Replace text by its salted hash, `v2.<alg>` over UTF-8 ({_MASKED}).",
        secret=True,
        protects=True,
    ),
    Option("column.propagate.source.type", PATTERNS, None, f"Add the column's type to its schema ({_MASKED})."),
    Option("datatype.propagate.source.type", PATTERNS, None, "The same, chosen by type (`schema.table.type`)."),
)

_TYPED = "of a replica, and of `shape=table`; `schema.table.column`"
_ODD_TIMES = "Infinite times, and years outside 1 to 9999, which no type of a table holds"
_LOST = "Values that no event has (NaN in decimals, arrays of arrays)"
OUT_OF_RANGE = (
    Option("column.out.of.range.null", PATTERNS, None, f"{_ODD_TIMES}: null in these columns ({_TYPED})."),
    Option("column.out.of.range.text", PATTERNS, None, f"The same: these columns are texts, in ISO 8601 ({_TYPED})."),
    Option("value.loss.handling.mode", choice("event", "text"), "event", f"{_LOST}: null, or text (in replicas)."),
)

EVENTS = (
    Option(
        "unavailable.value.placeholder",
        TEXT,
        "__debezium_unavailable_value",
        "Replaces a value that the log does not contain; `hex:` begins bytes.",
        aliases=(Alias("toasted.value.placeholder"),),
    ),
    Option(
        "event.converting.failure.handling.mode",
        choice("fail", "warn", "skip"),
        "warn",
        "What to do with a value that cannot be converted.",
    ),
    Option(
        "event.processing.failure.handling.mode",
        choice("fail", "warn", "skip"),
        "fail",
        "What to do with a change that cannot be read or encoded: `warn` and `skip` leave it out and log it.",
        old_values={"ignore": "skip"},
    ),
    Option("schema.name.adjustment.mode", _ADJUSTMENT, "none", "Make schema names safe for Avro."),
    Option(
        "field.name.adjustment.mode",
        _ADJUSTMENT,
        "none",
        "Make field names safe for Avro.",
        aliases=(Alias("sanitize.field.names", {"true": "avro", "false": "none"}),),
    ),
    Option("include.schema.comments", FLAG, "false", "Column comments as `doc` of the schema."),
    Option("extended.headers.enabled", FLAG, "true", "Context headers on each record."),
    Option("provide.transaction.metadata", FLAG, "false", "Transaction blocks and the transaction topic."),
    Option(
        "converters",
        NAMES,
        None,
        "Names of your converters; `<name>.*` are the settings of each.",
        protects=True,
    ),
    Option("post.processors", NAMES, None, "Names of post processors; one type is known."),
    Option(
        "<p>.type",
        TEXT,
        None,
        "Type of a post processor (ReselectColumnsPostProcessor, by its full name) or of a converter (an entry point "
        f"of the group `{entrypoints.CONVERTERS}`).",
    ),
    Option("<p>.reselect.columns.include.list", PATTERNS, None, "Columns to select again, as schema.table:column."),
    Option("<p>.reselect.columns.exclude.list", PATTERNS, None, "Columns not to select again, if not included."),
    Option("<p>.reselect.unavailable.values", FLAG, None, "Select values again that the log does not contain (true)."),
    Option("<p>.reselect.null.values", FLAG, None, "Select null values again (true)."),
    Option("<p>.reselect.cache.*", TEXT, None, "A cache.", CONNECT, "a batch looks each row up once, with one query"),
    Option("<p>.reselect.use.event.key", FLAG, None, "Find rows by the event's key, not the primary key (false)."),
    Option(
        "<p>.reselect.error.handling.mode",
        choice("warn", "fail"),
        None,
        "Where a row is gone: warn (the default) or fail.",
    ),
    Option("transaction.metadata.factory", _FACTORY, None, "Java class.", CONNECT, "there is one"),
    Option("source.struct.version", TEXT, "v2", "Version of the source block.", CONNECT, "there is one version"),
)


VALUES = (
    Option("decimal.handling.mode", choice("precise", "double", "string"), "precise", "How NUMERIC appears."),
    Option(
        "time.precision.mode",
        choice(
            *("adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"),
            refused={"structured": "use isostring or microseconds"},
        ),
        "adaptive",
        "How dates and times appear.",
    ),
    Option(
        "binary.handling.mode", choice("bytes", "base64", "base64-url-safe", "hex"), "bytes", "How binary data appears."
    ),
    *EVENTS,
)

CONVERTERS = (
    *converters(),
    Option("transforms", NAMES, None, "Single message transforms, in order.", protects=True),
    Option("transforms.*", TEXT, None, "Type, condition and settings of a transform."),
    Option("predicates", NAMES, None, "Conditions of transforms.", protects=True),
    Option("predicates.*", TEXT, None, "Type and settings of a condition."),
)

_FAULTY = "a faulty record stops the pipeline and is never skipped"
_SKIP = "remove it; event.processing.failure.handling.mode=warn skips and logs changes that cannot be read"
_ASIDE = "remove it; the sink replica sets tables aside that it cannot write (on_error), and no sink has such a topic"
RUNTIME = (
    Option("name", TEXT, None, "Name of the connector."),
    Option("errors.max.retries", INT, "-1", "Retries after a transient error; -1 is no limit."),
    Option("retriable.restart.connector.wait.ms", LONG_COUNT, "10000", "Pause before a retry."),
    Option("tasks.max", POSITIVE_INT, "1", "Tasks.", CONNECT, "Spark plans the tasks"),
    Option("max.batch.size", POSITIVE_INT, "2048", "Events of a batch.", CONNECT, _QUEUE),
    Option("max.queue.size", INT, "8192", "Events in the queue.", CONNECT, _QUEUE),
    Option("max.queue.size.in.bytes", LONG, "0", "Bytes in the queue.", CONNECT, _QUEUE),
    Option("queue.provider.type", TEXT, None, "Java class.", CONNECT, JVM),
    Option("poll.interval.ms", POSITIVE_LONG, "500", "Pause of an idle poll.", CONNECT, "the trigger sets the pace"),
    Option("poll.dispatch.interval.ms", LONG_COUNT, "0", "Pause to collect.", CONNECT, "the trigger sets the pace"),
    Option("query.fetch.size", COUNT, "0", "Rows for each round trip.", CONNECT, "the log is streamed"),
    Option("connection.validation.timeout.ms", POSITIVE_LONG, "60000", "Time limit for `tailrace check`."),
    Option("executor.shutdown.timeout.ms", LONG_COUNT, "4000", "Limit of a stop.", CONNECT, "Spark stops the query"),
    Option("statistics.metrics.enabled", FLAG, "true", "Quantiles of metrics.", CONNECT, _METRICS),
    Option("custom.metric.tags", TEXT, None, "Tags of metrics.", CONNECT, _METRICS),
    Option(
        "custom.sanitize.pattern",
        PATTERN,
        None,
        "Names of properties whose values are masked in logs and texts.",
        protects=True,
    ),
    Option(
        "internal.custom.retriable.exception",
        PATTERN,
        None,
        "Errors that are retried like transient ones: an expression that matches the whole message.",
    ),
    Option("openlineage.integration.enabled", FLAG, "false", "Lineage events of `tailrace run` to OpenLineage."),
    Option("openlineage.integration.config.file.path", TEXT, None, "The YAML file of OpenLineage's client."),
    Option("openlineage.integration.job.namespace", TEXT, None, "The job's namespace; `topic.prefix` by default."),
    Option("openlineage.integration.job.description", TEXT, None, "The job's description."),
    Option("openlineage.integration.job.tags", NAMES, None, "The job's tags, as `name=value,...`."),
    Option("openlineage.integration.job.owners", NAMES, None, "The job's owners, as `name=type,...`."),
    Option("openlineage.integration.*", TEXT, None, "Their other settings.", CONNECT, "the client's file has them"),
    Option("offset.*", TEXT, None, "Offset storage.", CONNECT, "Spark's checkpoint contains the offset"),
    Option("offset.storage", TEXT, None, "Offset store.", CONNECT, "Spark's checkpoint contains the offset"),
    Option("schema.history.internal", TEXT, None, "History store.", CONNECT, "the log has the schemas"),
    Option("schema.history.internal.*", TEXT, None, "History store.", CONNECT, "the log has the schemas"),
    Option("database.history.*", TEXT, None, "History store.", CONNECT, "the log has the schemas"),
    Option("errors.tolerance", TEXT, "none", "Skip faulty records.", CONNECT, _FAULTY, instead=_SKIP),
    Option("errors.deadletterqueue.*", TEXT, None, "Topic of those.", CONNECT, _FAULTY, instead=_ASIDE),
    Option("errors.*", TEXT, None, "Connect's error handling.", CONNECT, _FAULTY),
    Option(
        "topic.creation.*",
        TEXT,
        None,
        "How the sink `kafka` of a pipeline creates topics: `default.partitions`, `default.replication.factor`, "
        "configurations of topics, and `groups` with `include` and `exclude`.",
    ),
    Option("producer.override.*", TEXT, None, "Connect's producer.", CONNECT, "set the sink's own options"),
    Option(
        "exactly.once.support",
        choice("requested", refused={"required": _ONCE}),
        None,
        "Connect's guarantee.",
        CONNECT,
        "the sink decides",
    ),
    Option("config.action.reload", TEXT, None, "Connect's reload.", CONNECT, "a changed configuration needs a restart"),
)


def check_together(config: Config) -> Iterator[Problem]:
    """Faults that only show when properties are seen together, and plug-ins that are not there."""
    yield from entrypoints.check_entry_points(config)
    yield from check_addresses(config)
    yield from check_cloud_events(config)
    queue = config.number("max.queue.size")
    if queue <= 0:
        yield Problem("max.queue.size", "A positive queue size is required")
    elif queue <= config.number("max.batch.size"):
        yield Problem("max.queue.size", "Must be larger than the maximum batch size")
    if "Regex" in config.text("topic.naming.strategy"):
        for name in ("topic.regex", "topic.replacement"):
            if not config.optional(name):
                yield Problem(name, "A value is required", "the regex naming strategies need it")
        if config.optional("topic.key.field.regex") and not config.optional("topic.key.field.replacement"):
            message = "topic.key.field.replacement must be non-empty if topic.key.field.regex is set."
            yield Problem("topic.key.field.replacement", message)
    yield from _check_notifications(config)
    if config.flag("openlineage.integration.enabled") and find_spec("openlineage") is None:
        message = "lineage events need openlineage-python, not installed here"
        yield Problem("openlineage.integration.enabled", message, "pip install 'tailrace[lineage]'")
    if "kafka" in config.names("signal.enabled.channels") and not config.optional("signal.kafka.bootstrap.servers"):
        yield Problem("signal.kafka.bootstrap.servers", "A value is required", "the kafka signal channel needs it")


def _check_notifications(config: Config) -> Iterator[Problem]:
    """What the channels of notifications lack."""
    channels = config.names("notification.enabled.channels")
    if "sink" in channels and not config.optional("notification.sink.topic.name"):
        message = "Notification topic name must be provided when kafka notification channel is enabled"
        yield Problem("notification.sink.topic.name", message)
    for channel, name in (("file", "file"), ("callback", "callback"), ("http", "http.url")):
        if channel in channels and not config.optional(f"notification.{name}"):
            yield Problem(f"notification.{name}", "A value is required", f"the {channel} notification channel needs it")
    missing = [name for name in ("httpx", "tenacity") if "http" in channels and find_spec(name) is None]
    if missing:
        message = f"the http notification channel needs {' and '.join(missing)}, not installed here"
        yield Problem("notification.enabled.channels", message, "pip install 'tailrace[notify]'")
