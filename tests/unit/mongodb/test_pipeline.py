"""Which changes pass where the connector's own stages are left out (`cursor.pipeline.order=user_only`)."""

from __future__ import annotations

import pytest

from tailrace.config import Config
from tailrace.config.filters import TableFilter
from tailrace.config.options.filters import SKIPPED_OPERATIONS
from tailrace.connectors.mongodb.catalog import table_id
from tailrace.connectors.mongodb.config import resolve
from tailrace.connectors.mongodb.log.pipeline import captured, stages
from tailrace.errors import ConfigError

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


@pytest.mark.parametrize(
    ("properties", "asked"),
    [
        ({}, {"fullDocument": "updateLookup", "fullDocumentBeforeChange": "whenAvailable"}),
        ({"capture__mode__pre__image": "required"},
         {"fullDocument": "updateLookup", "fullDocumentBeforeChange": "required"}),
        ({"capture__mode__full__update__type": "post_image_required"},
         {"fullDocument": "required", "fullDocumentBeforeChange": "whenAvailable"}),
        ({"capture__mode": "change_streams_with_pre_image", "capture__mode__pre__image": "required"},
         {"fullDocumentBeforeChange": "required"}),
    ],
)  # fmt: skip
def test_images_that_are_asked_for(properties: dict[str, str], asked: dict[str, str]) -> None:
    config = given(**{"capture__mode": "change_streams_update_full_with_pre_image", **properties})
    assert stages(config, {})[0] == {"$changeStream": {**asked, "allChangesForCluster": True}}


@pytest.mark.parametrize("mode", ["change_streams", "oplog", "change_streams_update_full"])
def test_a_mode_without_pre_images_cannot_require_them(mode: str) -> None:
    with pytest.raises(ConfigError, match="asks for no pre-images"):
        given(capture__mode=mode, capture__mode__pre__image="required")


@pytest.mark.parametrize("mode", ["change_streams", "oplog", "change_streams_with_pre_image"])
def test_a_mode_without_post_images_cannot_require_them(mode: str) -> None:
    with pytest.raises(ConfigError, match="asks for no post-images"):
        given(capture__mode=mode, capture__mode__full__update__type="post_image_required")
    given(capture__mode=mode, capture__mode__full__update__type="post_image", cursor__pipeline="")


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
