"""Which table a wrong name means."""

from __future__ import annotations

import pytest

from tailrace.pipeline.nearest import meant_tables

TABLES = ["public.nokey", "public.orders", "sales.orders", "public.Customers"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nokey", "Did you mean public.nokey?"),
        ("orders", "Did you mean public.orders or sales.orders?"),
        ("public.nokeys", "Did you mean public.nokey?"),
        ("nokeys", "Did you mean public.nokey?"),
        ("PUBLIC.ORDERS", "Did you mean public.orders?"),
        ('public."customers"', "Did you mean public.Customers?"),
        ("other.nokey", "Did you mean public.nokey?"),
        ("zzz", None),
    ],
)
def test_names_that_are_near(name: str, said: str | None) -> None:
    assert meant_tables(name, TABLES) == said
