"""Which changes pass where the connector's own stages are left out (`cursor.pipeline.order=user_only`)."""

from __future__ import annotations

import pytest

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.config.options.filters import SKIPPED_OPERATIONS
from tailrace.connectors.mongodb.catalog import table_id
from tailrace.connectors.mongodb.config import resolve
from tailrace.connectors.mongodb.log.pipeline import captured, stages

GIVEN = {
    "mongodb.connection.string": "mongodb://h",
    "topic.prefix": "t",
    "cursor.pipeline": "[]",
    "cursor.pipeline.order": "user_only",
    "database.include.list": "shop",
    "collection.exclude.list": ".*[.]secrets",
    "skipped.operations": "d",
}


def given(**properties: str) -> Config:
    return resolve({**GIVEN, **{name.replace("__", "."): value for name, value in properties.items()}})


@pytest.mark.parametrize(
    ("faults", "names"), [("false", ["shop.orders"]), ("true", ["shop.orders", "other.orders", "other.signals"])]
)
def test_lists_without_the_own_stages(faults: str, names: list[str]) -> None:
    """Debezium: ChangeStreamPipelineFactory; the client looks at the lists of collections alone."""
    lets = captured(given(compat__faults=faults))
    found = ["shop.orders", "shop.secrets", "other.orders", "other.signals"]
    assert [name for name in found if lets(table_id(*name.split(".")))] == names


def test_signals_alone_are_read_only_by_the_own_stages() -> None:
    lists = {"database__include__list": "", "collection__exclude__list": "", "compat__faults": "true"}
    config = given(**lists, signal__data__collection="shop.signals")
    assert captured(config)(table_id("shop", "orders"))
    config = given(**lists, signal__data__collection="shop.signals", cursor__pipeline__order="internal_first")
    assert not captured(config)(table_id("shop", "orders"))


def test_no_operation_is_skipped_without_the_own_stages() -> None:
    """Debezium: MongoDbConnectorConfig.supportsOperationFiltering."""
    assert given()[SKIPPED_OPERATIONS] == ("d",)
    assert given(compat__faults="true")[SKIPPED_OPERATIONS] == ()
    assert given(compat__faults="true", cursor__pipeline__order="user_first")[SKIPPED_OPERATIONS] == ("d",)
    assert [list(stage) for stage in stages(given(), {})] == [["$changeStream"]]


def test_literal_lists_exclude_in_any_case() -> None:
    """Debezium: Predicates.excludesLiterals."""
    lists = {
        "database.include.list": "Shop,shop",
        "collection.exclude.list": "Shop.Sec+rets",
        "skipped.operations": "t",
    }
    filter_ = TableFilter.from_config(resolve({**GIVEN, **lists, "filters.match.mode": "literal"}))
    found = ["shop.sec+rets", "shop.secrets", "SHOP.orders"]
    assert [name for name in found if filter_.captures(table_id(*name.split(".")))] == ["shop.secrets"]
