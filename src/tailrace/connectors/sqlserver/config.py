"""Resolves the properties of the SQL Server connector, and checks those that concern each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tailrace.config import resolve as resolution
from tailrace.config import shared
from tailrace.config.dialects import from_mapping
from tailrace.config.kinds import (
    TEXT,
    split_list,
)
from tailrace.config.masks import check_masks
from tailrace.config.option import Option, OptionTable
from tailrace.config.options.databases import DATABASE_NAMES
from tailrace.config.overrides import check_overrides
from tailrace.config.resolve import Check, Config, Problem
from tailrace.connectors.registry import elsewhere
from tailrace.connectors.sqlserver.options import CURRENT, NAMING, OLD, OPTIONS

_CHECKS = (shared.check_together, check_masks, check_overrides)


def resolve(properties: Mapping[str, object], checks: Sequence[Check] = ()) -> Config:
    """The checked Config of a SQL Server connector. Raises ConfigError naming every problem, also of `checks`."""
    if str(properties.get("compat.version", CURRENT)).strip() == OLD:
        properties = {"schema.name.adjustment.mode": "avro", "extended.headers.enabled": "false", **properties}
    given = from_mapping(properties)
    names = split_list(given.get("database.names", ""))
    naming = replace(NAMING, default_database=names[0]) if len(names) == 1 else NAMING
    own = tuple(
        Option(f"{name}.*", TEXT, None, "Settings of the converter.")
        for name in split_list(given.get("converters", ""))
    )
    options = OptionTable({**OPTIONS.groups, "Converters of one's own": own}) if own else OPTIONS
    return resolution.resolve(properties, options, (*_CHECKS, _check_names, *checks), naming, elsewhere)


def _check_names(config: Config) -> Iterator[Problem]:
    if not config[DATABASE_NAMES]:
        yield Problem("database.names", "A value is required", "name the databases to capture")
