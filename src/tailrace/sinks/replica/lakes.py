"""Finds the lake of a replica's root: tables of Delta below a path, or of Iceberg in a namespace of a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from tailrace.errors import ConfigError
from tailrace.sinks.replica.delta.lake import DeltaLake
from tailrace.sinks.replica.roots import ICEBERG
from tailrace.sinks.replica.table import Lake


def lake_at(root: str, options: Mapping[str, str]) -> Lake:
    """The lake of a root: a path or URL, with options of its storage; `iceberg://namespace`, with its catalog's.

    A folder below a root (`<root>/_aside`) is another lake. Raises ConfigError where the package for it is missing.
    """
    if root.startswith(ICEBERG):
        if find_spec("pyiceberg") is None:
            raise ConfigError(
                "Iceberg tables need the package pyiceberg", where="sink", remedy="pip install 'tailrace[iceberg]'"
            )
        from tailrace.sinks.replica.iceberg.lake import IcebergLake  # loads pyiceberg, which is optional

        return IcebergLake.of(root.removeprefix(ICEBERG), options)
    return DeltaLake(root, options)
