"""The properties that select tables, columns and operations, that mask values, and that set keys."""

from __future__ import annotations

from typing import NamedTuple

from tailrace.config.kinds import COUNT, FLAG, KEY_COLUMNS, OPERATIONS, PATTERNS, Patterns, choice
from tailrace.config.option import Alias, Option

_MASKED = "schema.table.column"


class Lists(NamedTuple):
    """The list of what is captured of a kind, and the list of what is left out."""

    include: Option[Patterns]
    exclude: Option[Patterns]

    @staticmethod
    def of(kind: str, matched: str, counterpart: str = "") -> Lists:
        """Both lists, with their old names; `counterpart` is the kind that other databases have in its place."""
        include, exclude = f"{kind}.include.list", f"{kind}.exclude.list"
        return Lists(
            Option(
                include,
                PATTERNS,
                None,
                f"{matched} to capture.",
                aliases=(Alias(f"{kind}.whitelist"),),
                protects=True,
                counterpart=f"{counterpart}.include.list" if counterpart else None,
            ),
            Option(
                exclude,
                PATTERNS,
                None,
                f"{matched} to leave out.",
                aliases=(Alias(f"{kind}.blacklist"),),
                excluded_by=include,
                protects=True,
                counterpart=f"{counterpart}.exclude.list" if counterpart else None,
            ),
        )


DATABASES = Lists.of("database", "Databases")
SCHEMAS = Lists.of("schema", "Schemas")
TABLES = Lists.of("table", "Tables (`schema.table`)")
COLLECTIONS = Lists.of("collection", "Collections (`database.collection`)", "table")
COLUMNS = Lists.of("column", "Columns of values (`schema.table.column`)")

EVENT_FILTERS = (
    SKIPPED_OPERATIONS := Option(
        "skipped.operations",
        OPERATIONS,
        "t",
        "Operations that give no event.",
        aliases=(Alias("truncate.handling.mode", {"include": "none", "skip": "t"}),),
        protects=True,
    ),
    SKIP_MESSAGES_WITHOUT_CHANGE := Option(
        "skip.messages.without.change", FLAG, "false", "Leave out updates that change no captured column."
    ),
    TOMBSTONES_ON_DELETE := Option("tombstones.on.delete", FLAG, "true", "A tombstone follows each delete."),
    GUARDRAIL_COLLECTIONS_MAX := Option(
        "guardrail.collections.max", COUNT, "0", "Most tables that may be captured; 0 is no limit."
    ),
    GUARDRAIL_COLLECTIONS_LIMIT_ACTION := Option(
        "guardrail.collections.limit.action", choice("warn", "fail"), "warn", "What to do beyond it."
    ),
)

FILTERS = (
    *SCHEMAS,
    *TABLES,
    *COLUMNS,
    TABLE_IGNORE_BUILTIN := Option("table.ignore.builtin", FLAG, "true", "Never capture the system's own tables."),
    MESSAGE_KEY_COLUMNS := Option(
        "message.key.columns", KEY_COLUMNS, None, "Key columns by table, instead of the primary key.", protects=True
    ),
    *EVENT_FILTERS,
)

MASKS = (
    COLUMN_TRUNCATE := Option("column.truncate.to.<n>.chars", PATTERNS, None, f"Cut text ({_MASKED}).", protects=True),
    COLUMN_MASK := Option(
        "column.mask.with.<n>.chars", PATTERNS, None, f"Replace text by asterisks ({_MASKED}).", protects=True
    ),
    COLUMN_MASK_HASH := Option(
        "column.mask.hash.<alg>.with.salt.<salt>",
        PATTERNS,
        None,
        f"Replace text by its salted hash, `v2.<alg>` over UTF-8 ({_MASKED}).",
        secret=True,
        protects=True,
    ),
    COLUMN_PROPAGATE_SOURCE_TYPE := Option(
        "column.propagate.source.type", PATTERNS, None, f"Add the column's type to its schema ({_MASKED})."
    ),
    DATATYPE_PROPAGATE_SOURCE_TYPE := Option(
        "datatype.propagate.source.type", PATTERNS, None, "The same, chosen by type (`schema.table.type`)."
    ),
)

_TYPED = "of a replica, and of `shape=table`; `schema.table.column`"
_ODD_TIMES = "Infinite times, and years outside 1 to 9999, which no type of a table holds"
_LOST = "Values that no event has (NaN in decimals, arrays of arrays)"
OUT_OF_RANGE = (
    COLUMN_OUT_OF_RANGE_NULL := Option(
        "column.out.of.range.null", PATTERNS, None, f"{_ODD_TIMES}: null in these columns ({_TYPED})."
    ),
    COLUMN_OUT_OF_RANGE_TEXT := Option(
        "column.out.of.range.text", PATTERNS, None, f"The same: these columns are texts, in ISO 8601 ({_TYPED})."
    ),
    VALUE_LOSS_HANDLING_MODE := Option(
        "value.loss.handling.mode", choice("event", "text"), "event", f"{_LOST}: null, or text (in replicas)."
    ),
)
