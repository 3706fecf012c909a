"""Resolves the properties of the Db2 connector, and checks those that concern each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tailrace.config import resolve as resolution
from tailrace.config import shared
from tailrace.config.dialects import from_mapping
from tailrace.config.filters import check_signal_table
from tailrace.config.kinds import TEXT, split_list
from tailrace.config.masks import check_masks
from tailrace.config.option import Option, OptionTable
from tailrace.config.options.databases import DATABASE_DBNAME
from tailrace.config.overrides import check_overrides
from tailrace.config.resolve import Check, Config, Problem
from tailrace.connectors.db2.options import CURRENT, OLD, OPTIONS, STREAMING_QUERY_TIMESPAN_SECONDS, SYSTEM_SCHEMAS
from tailrace.connectors.registry import elsewhere
from tailrace.model.table_id import SCHEMA_TABLE, TableNaming

_CHECKS = (shared.check_together, check_signal_table, check_masks, check_overrides)


def resolve(properties: Mapping[str, object], checks: Sequence[Check] = ()) -> Config:
    """The checked Config of a Db2 connector. Raises ConfigError naming every problem, also of `checks`."""
    if str(properties.get("compat.version", CURRENT)).strip() == OLD:
        properties = {"schema.name.adjustment.mode": "avro", "extended.headers.enabled": "false", **properties}
    given = from_mapping(properties)
    naming = TableNaming(
        SCHEMA_TABLE,
        default_schema=given.get("database.user", "").upper(),
        system_schemas=SYSTEM_SCHEMAS,
        default_database=given.get("database.dbname", ""),
    )
    own = tuple(
        Option(f"{name}.*", TEXT, None, "Settings of the converter.")
        for name in split_list(given.get("converters", ""))
    )
    options = OptionTable({**OPTIONS.groups, "Converters of one's own": own}) if own else OPTIONS
    return resolution.resolve(properties, options, (*_CHECKS, _check_database, *checks), naming, elsewhere)


def _check_database(config: Config) -> Iterator[Problem]:
    if not config[DATABASE_DBNAME].strip():
        yield Problem("database.dbname", "A value is required", "name the database to capture")
    if config[STREAMING_QUERY_TIMESPAN_SECONDS] == 1:
        yield Problem(
            STREAMING_QUERY_TIMESPAN_SECONDS.name,
            "One second is shorter than commits are apart",
            "set 0, or 2 and more; 120 is a good value",
        )
