"""Resolves the properties of the MongoDB connector, and checks those that concern each other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from tailrace.config import resolve as resolution
from tailrace.config import shared
from tailrace.config.faults import FAULTS, Fault
from tailrace.config.filters import check_signal_table
from tailrace.config.kinds import InvalidValue
from tailrace.config.resolve import Check, Config, Problem
from tailrace.connectors.mongodb.declared import parse_declarations
from tailrace.connectors.mongodb.fields import parse_rules
from tailrace.connectors.mongodb.options import (
    CAPTURE_FOR_REPLICA,
    CAPTURE_MODE,
    CAPTURE_MODE_FULL_UPDATE_TYPE,
    CAPTURE_MODE_PRE_IMAGE,
    CAPTURE_SCOPE,
    CAPTURE_TARGET,
    CURSOR_OVERSIZE_HANDLING_MODE,
    CURSOR_OVERSIZE_SKIP_THRESHOLD,
    CURSOR_PIPELINE,
    DOCUMENT_COLUMNS,
    FIELD_EXCLUDE_LIST,
    FIELD_RENAMES,
    LISTS,
    NAMING,
    OPLOG,
    OPTIONS,
    OVERRIDES,
    POST_IMAGE_REQUIRED,
    REQUIRED,
    SNAPSHOT_COLLECTION_FILTER_OVERRIDES,
    SNAPSHOT_COLLECTION_FILTER_OVERRIDES_COLLECTION,
)
from tailrace.connectors.mongodb.shell import loads
from tailrace.connectors.registry import elsewhere
from tailrace.errors import ConfigError


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
    """The properties; with that fault no operation is skipped where the connector's own stages are left out.

    Debezium: the stages alone skip them (MongoDbConnectorConfig.supportsOperationFiltering).
    """
    given = _named(properties)
    try:
        faults = FAULTS.parse(given.get("compat.faults", ("", "false"))[1])
    except InvalidValue:  # is reported when the property itself is resolved
        return properties
    is_without_stages = given.get("cursor.pipeline.order", ("", ""))[1].strip().lower() == "user_only"
    if not is_without_stages or Fault.LISTS_OF_STAGES not in faults:
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
    changed = dict(properties)
    for list_ in LISTS:
        name, text = given.get(list_, ("", ""))
        names = [each.strip() for each in text.split(",")] if text.strip() else []
        if names and not all(names):
            raise ConfigError(f"{list_} contains empty values", where=list_)
        if names:
            form = "{}" if ".exclude." in list_ else "(?-i:{})"
            changed[name] = ",".join(form.format(re.escape(each)) for each in names)
    return changed


def is_for_replica(config: Config) -> bool:
    """Whether the changes are for a sink that keeps the content of collections."""
    return config[CAPTURE_FOR_REPLICA]


def stages(config: Config) -> list[object]:
    """The stages of cursor.pipeline. Raises ValueError."""
    pipeline = loads(config[CURSOR_PIPELINE] or "[]")
    if not isinstance(pipeline, list) or not all(isinstance(stage, dict) for stage in pipeline):
        raise ValueError("it is no list of stages")
    return pipeline


def condition(text: str | None) -> dict[str, object]:
    """A condition on documents from its JSON text, as the shell reads it. Raises ValueError."""
    filter_ = loads(text or "{}")
    if not isinstance(filter_, dict):
        raise ValueError("it is no JSON object")
    return filter_


def conditions(config: Config) -> dict[str, str]:
    """The conditions of snapshot.collection.filter.overrides by collection."""
    given = {
        name.lower(): text for name, text in config.members(SNAPSHOT_COLLECTION_FILTER_OVERRIDES_COLLECTION).items()
    }
    listed = config[SNAPSHOT_COLLECTION_FILTER_OVERRIDES]
    return {name: given[f"{OVERRIDES}.{name}".lower()] for name in listed if f"{OVERRIDES}.{name}".lower() in given}


def _check_capture(config: Config) -> Iterator[Problem]:
    scope, target = config[CAPTURE_SCOPE], config[CAPTURE_TARGET] or ""
    if scope != "deployment" and not target:
        yield Problem("capture.target", "capture.target property is missing", f"capture.scope is {scope}")
    elif scope == "collection" and not re.fullmatch(r"[^.]+\..+", target):
        yield Problem("capture.target", "a database and a collection are expected", "write database.collection")
    if config[CURSOR_OVERSIZE_HANDLING_MODE] == "skip" and not config[CURSOR_OVERSIZE_SKIP_THRESHOLD]:
        yield Problem("cursor.oversize.skip.threshold", "Invalid threshold value for skipped document size")
    if config[CAPTURE_MODE] == OPLOG and config[CURSOR_PIPELINE]:
        remedy = "leave it out, or use a change stream (capture.mode=change_streams_update_full)"
        yield Problem("cursor.pipeline", "the oplog is read without stages", remedy)
    yield from _check_images(config)
    try:
        stages(config)
    except ValueError as error:
        yield Problem("cursor.pipeline", f"Change stream pipeline JSON is invalid: {error}")
    try:
        parse_rules(config[FIELD_EXCLUDE_LIST], config[FIELD_RENAMES])
    except ConfigError as error:
        yield Problem(error.where or "field.exclude.list", error.what)


def _check_images(config: Config) -> Iterator[Problem]:
    """Images that are required have to be asked for (MongoDbConnectorConfig of Debezium 3.7)."""
    mode = config[CAPTURE_MODE]
    both = "change_streams_update_full_with_pre_image"
    if config[CAPTURE_MODE_PRE_IMAGE] == REQUIRED and "pre_image" not in mode:
        remedy = f"set capture.mode to change_streams_with_pre_image or {both}"
        yield Problem(CAPTURE_MODE_PRE_IMAGE.name, f"capture.mode={mode} asks for no pre-images", remedy)
    if config[CAPTURE_MODE_FULL_UPDATE_TYPE] == POST_IMAGE_REQUIRED and "update_full" not in mode:
        remedy = f"set capture.mode to change_streams_update_full or {both}"
        yield Problem(CAPTURE_MODE_FULL_UPDATE_TYPE.name, f"capture.mode={mode} asks for no post-images", remedy)


def _check_overrides(config: Config) -> Iterator[Problem]:
    given = conditions(config)
    for name in config[SNAPSHOT_COLLECTION_FILTER_OVERRIDES]:
        if name not in given:
            yield Problem(f"{OVERRIDES}.{name}", "A value is required", f"{OVERRIDES} lists the collection")
            continue
        try:
            condition(given[name])
        except (ValueError, json.JSONDecodeError) as error:
            yield Problem(f"{OVERRIDES}.{name}", f"The condition is invalid: {error}")


def _check_columns(config: Config) -> Iterator[Problem]:
    try:
        parse_declarations(config[DOCUMENT_COLUMNS])
    except ConfigError as error:
        yield Problem(DOCUMENT_COLUMNS.name, error.what, error.remedy)


_CHECKS = (
    _check_columns,
    shared.check_together,
    check_signal_table,
    _check_capture,
    _check_overrides,
)
