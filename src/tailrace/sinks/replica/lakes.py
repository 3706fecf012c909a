"""Finds the lake of a replica's root: Delta tables below a path, Iceberg tables in a catalog, tables in a database."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from tailrace.errors import ConfigError
from tailrace.sinks.replica.delta.lake import DeltaLake
from tailrace.sinks.replica.form import Form
from tailrace.sinks.replica.roots import DATABASE, DATABASE_FORMAT, ICEBERG
from tailrace.sinks.replica.table import Lake


def lake_at(root: str, options: Mapping[str, str], form: Form | None = None) -> Lake:
    """The lake of a root: a path or URL, with options of its storage; `iceberg://namespace`, with its catalog's;
    a schema of a database, with `url` and `password`.

    A folder below a root (`<root>/_aside`) is another lake. `form`: how its Delta tables are stored. Raises ConfigError
    where the package for it is missing.
    """
    if root.startswith(ICEBERG):
        if find_spec("pyiceberg") is None:
            raise ConfigError(
                "Iceberg tables need the package pyiceberg", where="sink", remedy="pip install 'tailrace[iceberg]'"
            )
        from tailrace.sinks.replica.iceberg.lake import IcebergLake  # loads pyiceberg, which is optional

        return IcebergLake.of(root.removeprefix(ICEBERG), options, form.version if form is not None else 2)
    if root.startswith(DATABASE):
        if find_spec("psycopg") is None or find_spec("adbc_driver_postgresql") is None:
            raise ConfigError(
                f"tables of `format: {DATABASE_FORMAT}` need the database's drivers",
                where="sink",
                remedy=f"pip install 'tailrace[{DATABASE_FORMAT},delta]'",
            )
        from tailrace.sinks.replica.postgres.lake import DatabaseLake  # loads the drivers, which are optional

        return DatabaseLake.of(root, options)
    return DeltaLake(root, options, form=form or Form())
