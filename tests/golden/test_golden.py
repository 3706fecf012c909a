"""Every recorded scenario of this folder comes out of the source as it came out of the reference engine.

A slice runs in Spark. The others call the source as Spark calls it, in half the time; `make golden` runs all in Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.golden.databases.database import SkippedError
from tests.golden.run import Servers, scenarios
from tests.golden.scenario import DirectStream, Scenario, replay, run

DATABASES = ("postgres", "postgres-3.7", "mongodb", "sqlserver", "db2", "avro")
IN_SPARK = ("basic-crud", "restart")
# Of these the default suite has another one of the same kind, or tests of the unit.
LONG = {
    "postgres": (
        *("column-lists", "dates-of-the-driver", "default-expressions", "extended-headers-off", "mask-defaults"),
        *("initial-snapshot-single-row", "notifications-initial-tables", "signal-incremental-tables"),
        *("skip-without-change-full", "snapshot-empty-first-last", "table-exclude", "times-in-arrays"),
        *("toast-binary-base64", "transform-headers-string", "transform-outbox-options", "truncate-skipped"),
        *("types-numeric-negative-scale", "logical-messages-filtered", "types-unknown-included"),
        *("message-key-columns-database", "schema-comments", "order-by-row-count", "arrays-unknown", "changed-bits"),
        *("unwrap-add-transaction", "signal-excluded"),
        *("transform-header-to-value-transaction", "key-columns-skipped-updates", "transform-names-avro"),
        *("transform-timezone-lists", "transform-partition-routing-fields", "signal-blocking-conditions"),
        *("signal-incremental-surrogate-conditions", "outbox-aggregates", "masks-of-types"),
        *("enum-label-added", "regex-no-key", "arrays-rare", "masks-of-keys", "masks-toast", "column-mask"),
        *("transform-headers-simple", "transform-topic-router", "no-tombstones", "topic-naming"),
    ),
    "postgres-3.7": (
        *("geometry", "geometry-arrays", "geometry-format", "geometry-required", "midnight", "times-in-arrays"),
        *("times-keys", "times-required", "times-required-default", "times-transforms", "transforms", "unwrap"),
        *("outbox-arrays", "router-schemas"),
    ),
    "mongodb": (
        *("cursor-pipeline", "field-exclude-change-streams-update-full", "filters-literal", "names-avro"),
        *("field-renames-change-streams-update-full", "large-strings-and-nesting", "names-twice", "no-tombstones"),
        *("notifications-sink", "regex-naming", "signal-surrogate-key", "transform-unwrap-key-documents"),
        *("transform-unwrap-plain", "heartbeat", "basic-crud-change-streams-update-full-with-pre-image"),
        *("skipped-user-only", "field-exclude-kinds"),
    ),
    "sqlserver": (
        *("column-exclude-key", "extended-headers-off", "key-change-skipped-c", "key-change-skipped-d"),
        *("names-avro-unicode", "no-column-included", "notifications-capture-instance", "schema-changes-at-start"),
        *("signal-incremental-snapshot", "snapshot-no-data", "types-temporal-isostring", "update-of-nothing"),
        *("heartbeat", "no-pk", "pk-change", "snapshot-empty-first-last", "transaction-metadata"),
        *("placeholder-hex", "captured-without-key", "defaults-cut", "wide-large-values"),
        *("column-propagate-type", "captured-column-list"),
    ),
    "avro": (
        *("db2-rows", "mongodb-rows", "postgres-chain", "postgres-evolution", "postgres-names"),
        *("postgres-names-unicode", "postgres-outbox", "postgres-outbox-text", "postgres-topics"),
        *("postgres-types-modes", "postgres-types-plain-meta", "sqlserver-evolution", "sqlserver-modes"),
    ),
    "db2": ("message-key-columns", "no-pk", "snapshot-include-structures", "table-added", "transaction-metadata"),
}
RECORDED = [
    pytest.param(each, id=f"{database}-{each.name}", marks=[pytest.mark.long] * (each.name in LONG[database]))
    for database in DATABASES
    for each in scenarios(Path(__file__).parent / database)
]


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """The servers the recordings are repeated on."""
    with Servers() as servers:
        yield servers


def test_there_are_recordings() -> None:
    assert RECORDED
    for database, names in LONG.items():
        assert set(names) < {each.name for each in scenarios(Path(__file__).parent / database)}


@pytest.mark.parametrize("scenario", RECORDED)
def test_scenario(scenario: Scenario, servers: Servers, spark: SparkSession) -> None:
    server = servers.of(scenario)
    try:
        if scenario.name.startswith(IN_SPARK):
            differences = run(scenario, server, spark)
        else:
            differences = scenario.differences(replay(scenario, server, DirectStream(server, scenario)))
    except SkippedError as reason:
        pytest.skip(str(reason))
    assert differences == []
