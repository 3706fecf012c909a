"""The properties that do not depend on the database, in the groups of the reference page, and their checks."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from tailrace.config import entrypoints
from tailrace.config.cloud_events import check_cloud_events
from tailrace.config.converter_checks import check_addresses

# Re-exported: the groups.
from tailrace.config.options.events import CONVERTERS as CONVERTERS
from tailrace.config.options.events import EVENTS as EVENTS
from tailrace.config.options.events import VALUES as VALUES
from tailrace.config.options.filters import EVENT_FILTERS as EVENT_FILTERS
from tailrace.config.options.filters import FILTERS as FILTERS
from tailrace.config.options.filters import MASKS as MASKS
from tailrace.config.options.filters import OUT_OF_RANGE as OUT_OF_RANGE
from tailrace.config.options.runtime import MAX_BATCH_SIZE, MAX_QUEUE_SIZE, OPENLINEAGE_INTEGRATION_ENABLED
from tailrace.config.options.runtime import RUNTIME as RUNTIME
from tailrace.config.options.snapshot import (
    NOTIFICATION_CALLBACK,
    NOTIFICATION_ENABLED_CHANNELS,
    NOTIFICATION_FILE,
    NOTIFICATION_HTTP_URL,
    NOTIFICATION_SINK_TOPIC_NAME,
    SIGNAL_ENABLED_CHANNELS,
    SIGNAL_KAFKA_BOOTSTRAP_SERVERS,
)
from tailrace.config.options.snapshot import SIGNALS as SIGNALS
from tailrace.config.options.snapshot import SNAPSHOT as SNAPSHOT
from tailrace.config.options.snapshot import snapshot_mode as snapshot_mode
from tailrace.config.options.spark import SPARK as SPARK
from tailrace.config.options.spark import spark as spark
from tailrace.config.options.topics import (
    TOPIC_KEY_FIELD_REGEX,
    TOPIC_KEY_FIELD_REPLACEMENT,
    TOPIC_NAMING_STRATEGY,
    TOPIC_REGEX,
    TOPIC_REPLACEMENT,
)
from tailrace.config.options.topics import TOPICS as TOPICS
from tailrace.config.resolve import Config, Problem


def check_together(config: Config) -> Iterator[Problem]:
    """Faults that only show when properties are seen together, and plug-ins that are not there."""
    yield from entrypoints.check_entry_points(config)
    yield from check_addresses(config)
    yield from check_cloud_events(config)
    queue = config[MAX_QUEUE_SIZE]
    if queue <= 0:
        yield Problem("max.queue.size", "A positive queue size is required")
    elif queue <= config[MAX_BATCH_SIZE]:
        yield Problem("max.queue.size", "Must be larger than the maximum batch size")
    if "Regex" in config[TOPIC_NAMING_STRATEGY]:
        for option in (TOPIC_REGEX, TOPIC_REPLACEMENT):
            if not config[option]:
                yield Problem(option.name, "A value is required", "the regex naming strategies need it")
        if config[TOPIC_KEY_FIELD_REGEX] and not config[TOPIC_KEY_FIELD_REPLACEMENT]:
            message = "topic.key.field.replacement must be non-empty if topic.key.field.regex is set."
            yield Problem("topic.key.field.replacement", message)
    yield from _check_notifications(config)
    if config[OPENLINEAGE_INTEGRATION_ENABLED] and find_spec("openlineage") is None:
        message = "lineage events need openlineage-python, not installed here"
        yield Problem("openlineage.integration.enabled", message, "pip install 'tailrace[lineage]'")
    if "kafka" in config[SIGNAL_ENABLED_CHANNELS] and not config[SIGNAL_KAFKA_BOOTSTRAP_SERVERS]:
        yield Problem("signal.kafka.bootstrap.servers", "A value is required", "the kafka signal channel needs it")


def _check_notifications(config: Config) -> Iterator[Problem]:
    """What the channels of notifications lack."""
    channels = config[NOTIFICATION_ENABLED_CHANNELS]
    if "sink" in channels and not config[NOTIFICATION_SINK_TOPIC_NAME]:
        message = "Notification topic name must be provided when kafka notification channel is enabled"
        yield Problem("notification.sink.topic.name", message)
    needed = (("file", NOTIFICATION_FILE), ("callback", NOTIFICATION_CALLBACK), ("http", NOTIFICATION_HTTP_URL))
    for channel, option in needed:
        if channel in channels and not config[option]:
            yield Problem(option.name, "A value is required", f"the {channel} notification channel needs it")
    missing = [name for name in ("httpx", "tenacity") if "http" in channels and find_spec(name) is None]
    if missing:
        message = f"the http notification channel needs {' and '.join(missing)}, not installed here"
        yield Problem("notification.enabled.channels", message, "pip install 'tailrace[notify]'")
