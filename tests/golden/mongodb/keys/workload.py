"""Documents whose _id has every type that an _id can have."""

import datetime
import uuid

from bson import SON, Binary, Decimal128, Int64, ObjectId, Timestamp
from bson.binary import UuidRepresentation

KEYS = [
    1,
    Int64(2),
    Int64(2**53 + 1),
    2.5,
    "text",
    'quo"ted \\ text',
    ObjectId("596e275826f08b2730779e1f"),
    SON([("a", 1), ("b", "two")]),
    Binary(b"\x01\x02\xff"),
    Binary.from_uuid(uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), UuidRepresentation.STANDARD),
    datetime.datetime(2020, 2, 29, 12, 34, 56, 789000, tzinfo=datetime.timezone.utc),
    Decimal128("1.50"),
    True,
    None,
    Timestamp(1580000000, 7),
]


def run(client):
    keys = client.inventory.keys
    for number, key in enumerate(KEYS):
        keys.insert_one({"_id": key, "number": number})
    keys.delete_one({"_id": 1})
    keys.update_one({"_id": "text"}, {"$set": {"number": 99}})
