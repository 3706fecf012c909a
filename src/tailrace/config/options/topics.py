"""The properties that name topics."""

from __future__ import annotations

from tailrace.config.kinds import ADDRESS, FLAG, INT, PATTERN, TEXT, choice, optional
from tailrace.config.option import JVM, Alias, Option, OptionStatus

CONNECT = OptionStatus.CONNECT

_NAMING = "io.debezium.schema."
TOPICS = (
    TOPIC_PREFIX := Option(
        "topic.prefix",
        ADDRESS,
        None,
        "Logical name of the source: first part of every topic, `source.name` of every event.",
        required=True,
        aliases=(Alias("database.server.name"),),
    ),
    TOPIC_DELIMITER := Option("topic.delimiter", ADDRESS, ".", "Between the parts of a topic name."),
    TOPIC_TRANSACTION := Option("topic.transaction", ADDRESS, "transaction", "Last part of the transaction topic."),
    TOPIC_NAMING_STRATEGY := Option(
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
    TOPIC_REGEX := Option("topic.regex", optional(PATTERN), None, "Expression of the regex naming strategies."),
    TOPIC_REPLACEMENT := Option("topic.replacement", optional(TEXT), None, "Replacement for topic.regex."),
    TOPIC_KEY_ENFORCE_UNIQUENESS := Option(
        "topic.key.enforce.uniqueness", FLAG, "true", "Regex naming strategies add the table's name to keys."
    ),
    TOPIC_KEY_FIELD_NAME := Option(
        "topic.key.field.name", TEXT, "__dbz__physicalTableIdentifier", "Name of that field of keys."
    ),
    TOPIC_KEY_FIELD_REGEX := Option(
        "topic.key.field.regex", optional(PATTERN), None, "Expression that the table's name in that field must match."
    ),
    TOPIC_KEY_FIELD_REPLACEMENT := Option(
        "topic.key.field.replacement", optional(TEXT), None, "Replacement for topic.key.field.regex."
    ),
    Option("topic.cache.size", INT, "10000", "Number of cached names.", CONNECT, "names are computed once a batch"),
    TOPIC_HEARTBEAT_PREFIX := Option(
        "topic.heartbeat.prefix",
        ADDRESS,
        "__debezium-heartbeat",
        "First part of the heartbeat topic.",
        aliases=(Alias("heartbeat.topics.prefix"),),
    ),
    TOPIC_HEARTBEAT_NAME := Option(
        "topic.heartbeat.name", optional(ADDRESS), None, "Full name of the heartbeat topic."
    ),
    INCLUDE_SCHEMA_CHANGES := Option(
        "include.schema.changes",
        FLAG,
        "true",
        "Send records of schema changes to the topic `<topic.prefix>`, if the server reports schema changes.",
    ),
)
