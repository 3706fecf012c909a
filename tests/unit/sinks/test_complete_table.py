"""The table beside a replica that says up to which time its tables are complete, in each format."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from tailrace.sinks.replica.complete import write
from tailrace.sinks.replica.target import stored_tables
from tests.behaviour.engines import catalog


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_the_newest_times_are_beside_the_tables(tmp_path: Path, kind: str) -> None:
    options: Mapping[str, str] = catalog(tmp_path / "lake") if kind == "iceberg" else {}
    root = "iceberg://shop" if kind == "iceberg" else str(tmp_path / "lake")
    assert write(root, options, "shop", {"*": None}) is None
    assert not (tmp_path / "lake").exists() or not list((tmp_path / "lake").rglob("*_complete")), "nothing is known"
    for hour in (11, 12):
        until = {"*": None, "public.orders": datetime(2026, 1, 1, hour, tzinfo=timezone.utc)}
        assert write(root, options, "shop", until) is None
    if kind == "iceberg":
        rows = load_catalog("tailrace", **options).load_table(("shop_complete", "shop")).scan().to_arrow()
    else:
        rows = DeltaTable(tmp_path / "lake" / "_complete" / "shop").to_pyarrow_table()
    assert dict(zip(*(column.to_pylist() for column in rows.columns), strict=True)) == until
    assert list(stored_tables(root, options)) == [], "it is no table of the replica"
