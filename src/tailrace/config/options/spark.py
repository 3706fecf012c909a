"""The properties of the stream in Spark: its rows, and how much of the log a micro-batch reads."""

from __future__ import annotations

from dataclasses import replace

from tailrace.config.faults import FAULTS
from tailrace.config.kinds import BYTE_SIZE, TEXT, choice, optional
from tailrace.config.option import Option, OptionStatus

CONNECT = OptionStatus.CONNECT

SPARK = (
    SHAPE := Option(
        "shape",
        choice("kafka", "event", "table", "arrow", "count"),
        "kafka",
        "What a row of the stream is: a Kafka record, an event, a row image of one table, a batch of changes, or a "
        "number of records.",
    ),
    EVENT_DECIMAL_FORMAT := Option(
        "event.decimal.format",
        choice("number", "text", "base64"),
        "number",
        "Decimals in the shape `event`: JSON numbers, JSON strings, or base64 of the unscaled value.",
    ),
    MAX_BYTES_PER_TRIGGER := Option(
        "maxBytesPerTrigger", BYTE_SIZE, "268435456", "Most bytes of log that a micro-batch reads."
    ),
    TAILRACE_PROPERTIES := Option(
        "tailrace.properties",
        optional(TEXT),
        None,
        "All properties as one JSON object, for names whose case matters: Spark's options fold it.",
    ),
    COMPAT_FAULTS := Option(
        "compat.faults",
        FAULTS,
        "false",
        "Repeat faults of the reference engine that are fixed by default: `true`, or the [names](faults.md) of some.",
    ),
)


def spark(why: str) -> tuple[Option[object], ...]:
    """The properties of a source whose log is not measured in bytes; `why` says what else limits a micro-batch."""
    return tuple(
        replace(each, status=CONNECT, note=why) if each.name == "maxBytesPerTrigger" else each for each in SPARK
    )
