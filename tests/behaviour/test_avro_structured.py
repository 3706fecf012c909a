"""Structured times and the geometric types of Debezium 3.7 in Avro, as tables have them and behind transforms."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tailrace.connectors import registry as connectors
from tailrace.transforms.encoder import Encoder
from tests.behaviour.avro_records import confluent, read
from tests.behaviour.capture import Capture, capturing
from tests.behaviour.test_structured_times import DAY, POSTGRES
from tests.conftest import Database
from tests.servers.registry import Registry

APACHE = "org.apache.kafka.connect.transforms."
UNWRAP = {"transforms": "u", "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState"}
FLAT = {
    **UNWRAP,
    "transforms": "u,f",
    "transforms.f.type": f"{APACHE}Flatten$Value",
    "transforms.f.delimiter": "_",
}
NAMED = {
    **UNWRAP,
    "transforms": "u,z,k,x",
    "transforms.z.type": "io.debezium.transforms.TimezoneConverter",
    "transforms.z.converted.timezone": "+02:00",
    "transforms.k.type": f"{APACHE}ValueToKey",
    "transforms.k.fields": "s,b",
    "transforms.x.type": f"{APACHE}HoistField$Value",
    "transforms.x.field": "row",
}
CREATE = (
    "CREATE TABLE times (id int, d date NOT NULL, t time, tz timetz(3), s timestamp(2), sz timestamptz, i interval, "
    "a date[], b box, c circle, p point, PRIMARY KEY (id, d))"
)
INSERT = (
    "INSERT INTO times VALUES (1, '2018-06-20', '15:13:16.945104', '15:13:16.945-01', '2018-06-20 15:13:16.95', "
    "'2018-06-20 17:13:16.945104+02', '1 year 2 months 3 days 04:05:06.789', '{2018-06-20,NULL}', '(1,1),(0,0)', "
    "'<(1,2),3>', '(1,2)')",
    "INSERT INTO times VALUES (2, '-infinity')",
)


def values(capture: Capture) -> list[dict[str, Any]]:
    """The records of what has come."""
    package = connectors.named("postgres").load()
    encoder = Encoder(capture.config, package.source_block(capture.config), "run")
    batches = (batch for split in capture.plan() for chunk in capture.reader.read(split) for batch in chunk.batches)
    return [row for batch in batches if len(batch) for rows in encoder.encode(batch) for row in rows.to_pylist()]


def written(database: Database, registry: Registry, chain: dict[str, str]) -> list[tuple[Any, Any]]:
    """Keys and values of two rows that are read and two that are inserted, as consumers see them."""
    own = {"time.precision.mode": "structured", "compat.version": "3.7", **confluent(registry), **chain}
    database.execute(CREATE, *INSERT)
    with capturing(database, **{name.replace(".", "__"): text for name, text in own.items()}) as capture:
        found = values(capture)
        database.execute("UPDATE times SET id = id + 2")
        found += values(capture)
    return [(read(registry, row["key"]), read(registry, row["value"])) for row in found]


def test_rows_have_their_parts(database: Database, registry: Registry) -> None:
    (key, value), (_, empty), *_ = written(database, registry, {})
    row = value["after"]
    assert key == {"id": 1, "d": {**DAY, "specialValue": None}}
    assert {name: row[name] for name in POSTGRES} == POSTGRES
    assert row["p"] == {"x": 1.0, "y": 2.0, "wkb": struct.pack("<BI2d", 1, 1, 1, 2), "srid": None}
    assert row["b"] is not None
    assert row["c"] is not None
    null = {"year": None, "month": None, "day": None, "specialValue": "NEGATIVE_INFINITY"}
    assert {name: each for name, each in empty["after"].items() if each is not None} == {"id": 2, "d": null}


@pytest.mark.long
@pytest.mark.parametrize("chain", [UNWRAP, FLAT, NAMED], ids=["unwrap", "flatten", "timezone-key-hoist"])
def test_transforms_take_them(database: Database, registry: Registry, chain: dict[str, str]) -> None:
    found = [(key, value) for key, value in written(database, registry, chain) if value is not None]
    assert len(found) == 4
    for key, value in (found[0], found[2]):
        row = value.get("row", value)
        if chain is FLAT:
            assert (row["d_year"], row["s_nanos"], row["i_minutes"]) == (2018, 950_000_000, 5)
        else:
            assert {name: row[name] for name in POSTGRES if name not in ("s", "sz", "tz")} == {
                name: POSTGRES[name] for name in POSTGRES if name not in ("s", "sz", "tz")
            }
        if chain is NAMED:
            assert key == {"s": row["s"], "b": row["b"]}
