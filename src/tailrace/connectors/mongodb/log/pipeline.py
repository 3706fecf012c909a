"""Builds the aggregation pipeline of a change stream, in the order of `cursor.pipeline.order`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tailrace.config import Config
from tailrace.config.faults import Fault
from tailrace.config.filters import Rule, TableFilter, table_named, tables_of_signals
from tailrace.config.options.filters import SKIPPED_OPERATIONS
from tailrace.config.options.spark import COMPAT_FAULTS
from tailrace.connectors.mongodb.catalog import TEMPORARY, is_temporary
from tailrace.connectors.mongodb.config import is_for_replica
from tailrace.connectors.mongodb.config import stages as user_stages
from tailrace.connectors.mongodb.options import (
    CAPTURE_MODE,
    CAPTURE_MODE_FULL_UPDATE_TYPE,
    CAPTURE_MODE_PRE_IMAGE,
    CAPTURE_SCOPE,
    CAPTURE_TARGET,
    CURSOR_OVERSIZE_HANDLING_MODE,
    CURSOR_OVERSIZE_SKIP_THRESHOLD,
    CURSOR_PIPELINE_ORDER,
    FILTERS_MATCH_MODE,
    POST_IMAGE_REQUIRED,
    REQUIRED,
)
from tailrace.model.table import TableId

DROP, RENAME = "drop", "rename"
STRUCTURAL = (DROP, RENAME)
_OPERATIONS = {"c": ("insert",), "u": ("update", "replace"), "d": ("delete",)}
Stage = dict[str, Any]
# By capture.mode.full.update.type.
_FULL_DOCUMENTS = {"lookup": "updateLookup", "post_image": "whenAvailable", POST_IMAGE_REQUIRED: "required"}


def stages(config: Config, start: Stage) -> list[Stage]:
    """All stages; the first one opens the stream at `start`."""
    opening: Stage = {"$changeStream": {**_images(config), **start}}
    if is_for_replica(config):
        opening["$changeStream"]["showExpandedEvents"] = True  # with the UUIDs of collections
    if config[CAPTURE_SCOPE] == "deployment":
        opening["$changeStream"]["allChangesForCluster"] = True
    handling, order = config[CURSOR_OVERSIZE_HANDLING_MODE], config[CURSOR_PIPELINE_ORDER]
    own: list[Stage] = [] if order == "user_only" else [_match(config)]
    user: list[Any] = user_stages(config)
    middle = user + own if order == "user_first" else own + user
    first = [_small(config[CURSOR_OVERSIZE_SKIP_THRESHOLD])] if handling == "skip" else []
    last: list[Stage] = [{"$changeStreamSplitLargeEvent": {}}] if handling == "split" else []
    return [opening, *first, *middle, *last]


def _images(config: Config) -> Stage:
    """Which documents come with changes."""
    mode = config[CAPTURE_MODE]
    options = {}
    if "update_full" in mode:
        options["fullDocument"] = _FULL_DOCUMENTS[config[CAPTURE_MODE_FULL_UPDATE_TYPE]]
    if "pre_image" in mode:
        is_required = config[CAPTURE_MODE_PRE_IMAGE] == REQUIRED
        options["fullDocumentBeforeChange"] = "required" if is_required else "whenAvailable"
    return options


def _match(config: Config) -> Stage:
    """What passes: the operations and namespaces that can be captured. The filter of the client decides after it."""
    skipped = config[SKIPPED_OPERATIONS]
    wanted = [name for op, names in _OPERATIONS.items() if op not in skipped for name in names]
    # The names of a rename are compared by the client, as two of them matter.
    always_wanted = ["invalidate", *(STRUCTURAL if is_for_replica(config) else ())]
    conditions: list[Stage] = [{"operationType": {"$in": [*wanted, *always_wanted]}}]
    named = [{"ns": {"db": table.database, "coll": table.table}} for table in always(config)]
    listed = lists(config, "$ns.db", {"$concat": ["$ns.db", ".", "$ns.coll"]})
    if is_for_replica(config):
        lasting = {"ns.coll": {"$not": {"$regex": f"^(?:{TEMPORARY})$"}}}
        conditions.append({"$or": [{"operationType": {"$in": list(STRUCTURAL)}}, lasting]})
    if listed:
        passing: list[Stage] = [{"$expr": {"$and": listed}}, {"operationType": {"$in": always_wanted}}]
        conditions.append({"$or": passing + named})
    return {"$match": {"$and": conditions}}


def captured(config: Config) -> Callable[[TableId], bool]:
    """Whether a collection's changes are captured; of temporary ones events alone are, as they have no replica.

    The new name of a collection may be one that is not watched.
    """
    captures = _captured(config)
    if not is_for_replica(config):
        return captures
    return lambda table: captures(table) and is_watched(config, table) and not is_temporary(table)


def is_watched(config: Config, table: TableId) -> bool:
    """Whether a collection is within what `capture.scope` and `capture.target` name."""
    scope, target = config[CAPTURE_SCOPE], config[CAPTURE_TARGET]
    return scope == "deployment" or target == (table.database if scope == "database" else str(table))


def _captured(config: Config) -> Callable[[TableId], bool]:
    """Whether the lists say that a collection's changes are captured.

    With compat.faults, no database is excluded, one is included by a part of its name, and a collection of signals
    without any list is captured alone: the reference's stages say so (ChangeStreamPipelineFactory). With
    `cursor.pipeline.order=user_only` it has no such stages, so that the lists of databases have no effect.
    """
    filters = TableFilter.from_config(config)
    if Fault.LISTS_OF_STAGES not in config[COMPAT_FAULTS]:
        return filters.captures
    if config[CURSOR_PIPELINE_ORDER] == "user_only":
        return replace(filters, databases=Rule((), ())).captures
    rules = (filters.databases, filters.tables)
    is_listed = any(rule.include or rule.exclude for rule in rules)
    if not is_listed and filters.signals:
        return lambda table: table.unique in filters.signals
    if config[FILTERS_MATCH_MODE] == "literal":
        return filters.captures

    def is_captured(table: TableId) -> bool:
        if table.unique in filters.decided or table.unique in filters.signals:
            return filters.captures(table)
        parts = filters.databases.include
        is_inside = not parts or any(part.search(table.database) for part in parts)
        return is_inside and filters.tables.includes(table.filtered)

    return is_captured


def always(config: Config) -> list[TableId]:
    """The collections that pass whatever the lists say: that of signals, and those that a signal has added."""
    return [*tables_of_signals(config), *(table_named(config, name) for name, is_in in config.tables if is_in)]


def lists(config: Config, database: Any, name: Any) -> list[Stage]:
    """The include and exclude lists as expressions on a change's database and on its collection's whole name."""
    if Fault.LISTS_OF_STAGES in config[COMPAT_FAULTS]:
        return []
    filters = TableFilter.from_config(config)
    return [*_rule(database, filters.databases), *_rule(name, filters.tables)]


def _rule(name: Any, rule: Rule) -> list[Stage]:
    """An include and an exclude list as expressions; the server's are PCRE, which Java's nearly are."""
    conditions: list[Stage] = []
    if rule.include:
        conditions.append({"$regexMatch": {"input": name, "regex": _any(rule.include), "options": "i"}})
    if rule.exclude:
        conditions.append({"$not": [{"$regexMatch": {"input": name, "regex": _any(rule.exclude), "options": "i"}}]})
    return conditions


def _any(patterns: tuple[re.Pattern[str], ...]) -> str:
    return "^(?:" + "|".join(f"(?:{pattern.pattern})" for pattern in patterns) + ")$"


def _small(threshold: int) -> Stage:
    sizes = [{"$lte": [{"$bsonSize": f"${name}"}, threshold]} for name in ("fullDocument", "fullDocumentBeforeChange")]
    return {"$match": {"$and": [{"$expr": size} for size in sizes]}}
