"""Resolves the properties of the PostgreSQL connector, and checks those that concern each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tailrace.config import resolve as resolution
from tailrace.config import shared
from tailrace.config.dialects import from_mapping
from tailrace.config.filters import check_signal_table
from tailrace.config.kinds import (
    TEXT,
    split_list,
)
from tailrace.config.masks import check_masks
from tailrace.config.option import Option, OptionTable
from tailrace.config.options.events import PROVIDE_TRANSACTION_METADATA
from tailrace.config.options.snapshot import HEARTBEAT_INTERVAL_MS
from tailrace.config.overrides import check_overrides
from tailrace.config.processors import check_processors
from tailrace.config.resolve import Check, Config
from tailrace.connectors.postgres.options import LSN_FLUSH_MODE, OLD, OPTIONS
from tailrace.connectors.registry import elsewhere
from tailrace.model.table_id import TableNaming

_DRIVER_HEARTBEAT_MS = 600_000  # PostgresConnectorConfig's
NAMING = TableNaming(
    default_schema="public",
    system_schemas="pg_catalog|information_schema|pg_toast.*|pg_temp.*",
    system_tables=("spatial_ref_sys",),
)

_CHECKS = (
    shared.check_together,
    check_signal_table,
    check_masks,
    check_processors,
    check_overrides,
)


def resolve(properties: Mapping[str, object], checks: Sequence[Check] = ()) -> Config:
    """The checked Config of a PostgreSQL connector. Raises ConfigError naming every problem, also of `checks`."""
    if str(properties.get("compat.version", "current")).strip() == OLD:
        properties = {"schema.name.adjustment.mode": "avro", "extended.headers.enabled": "false", **properties}
    converters = split_list(from_mapping(properties).get("converters", ""))
    return _with_heartbeats(
        resolution.resolve(properties, _with_settings(converters), (*_CHECKS, *checks), NAMING, elsewhere)
    )


def _with_heartbeats(config: Config) -> Config:
    """Where the driver confirms positions, there are heartbeats (PostgresConnectorConfig)."""
    has_others = config[HEARTBEAT_INTERVAL_MS] or config[PROVIDE_TRANSACTION_METADATA]
    if config[LSN_FLUSH_MODE] != "connector_and_driver" or has_others:
        return config
    return replace(config, values={**config.values, HEARTBEAT_INTERVAL_MS.name: _DRIVER_HEARTBEAT_MS})


def _with_settings(converters: list[str]) -> OptionTable:
    """The table with the settings of converters of one's own, whose names only the configuration knows."""
    own = tuple(Option(f"{name}.*", TEXT, None, "Settings of the converter.") for name in converters)
    return OptionTable({**OPTIONS.groups, "Converters of one's own": own}) if own else OPTIONS
