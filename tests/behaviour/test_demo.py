"""The demo, with less traffic: its replica equals its source at the end, and a difference would be reported."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from tailrace.cli import demo_screen, demo_shop
from tailrace.cli.demo import Demo
from tailrace.cli.demo_screen import Screen
from tailrace.testing.postgres import PostgresServer


@pytest.fixture
def shop(postgres18: PostgresServer) -> PostgresServer:
    postgres18.drop_database(demo_shop.DATABASE)
    demo_shop.TableShop(postgres18).load()
    return postgres18


@pytest.mark.parametrize(
    "lake", ["delta", *(pytest.param(lake, marks=pytest.mark.long) for lake in ("iceberg", "postgres"))]
)
def test_the_replica_is_equal_in_the_end(
    shop: PostgresServer, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lake: str
) -> None:
    output = io.StringIO()
    monkeypatch.setattr(demo_screen, "results", Console(file=output, width=160))
    monkeypatch.setattr(demo_screen, "PLAIN_SECONDS", 0.5)
    assert Demo(demo_shop.TableShop(shop), tmp_path, Screen(), spark, lake=lake).run(4) == []
    said = output.getvalue()
    assert f"replica: {sorted(demo_shop.TABLES)[0]} " in said
    assert said.count("  equal   ") == len(demo_shop.TABLES)
    assert "create   shop.public.order" in said


def test_the_traffic_is_of_every_kind(shop: PostgresServer) -> None:
    with shop.connect(demo_shop.DATABASE) as connection:
        before = {table: demo_shop.rows(connection, table) for table in demo_shop.TABLES}
        traffic = demo_shop.Shop(connection)
        for _ in range(150):
            traffic.step()
        after = {table: demo_shop.rows(connection, table) for table in demo_shop.TABLES}
        for _ in range(50):
            traffic.step()
        assert demo_shop.rows(connection, "offers") == {}, "the 200th step empties the offers"
    assert len(after["orders"]) > len(before["orders"]) + 30
    assert len(after["customers"]) > len(before["customers"])
    highest = max(key[0] for key in after["orders"])
    assert len(after["orders"]) < highest, "some orders were cancelled"
    assert set(before["products"]) - set(after["products"]), "some products changed their key"
    assert len(after["products"]) == len(before["products"])
    assert {row["status"] for row in after["orders"].values()} == {"new", "shipped"}
