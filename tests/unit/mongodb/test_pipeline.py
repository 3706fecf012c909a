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


@pytest.mark.parametrize(("faults", "is_streamed"), [("false", False), ("lists_of_stages", True), ("true", True)])
def test_an_excluded_database_is_streamed_by_a_fault_alone(faults: str, is_streamed: bool) -> None:
    lists = {"database.include.list": "", "database.exclude.list": "other", "compat.faults": faults}
    config = resolve({**GIVEN, **lists, "cursor.pipeline.order": "internal_first"})
    lets = captured(config)
    assert [lets(table_id("other", name)) for name in ("orders", "secrets")] == [is_streamed, False]


def test_without_the_own_stages_the_client_skips() -> None:
    assert given()[SKIPPED_OPERATIONS] == ("d",)
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
