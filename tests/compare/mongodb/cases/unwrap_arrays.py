"""The same with arrays of one type."""

from bson import Binary, Decimal128, Int64, ObjectId, Regex, Timestamp
from bson.datetime_ms import DatetimeMS

PROPERTIES = {
    "transforms": "unwrap",
    "transforms.unwrap.type": "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState",
    "transforms.unwrap.array.encoding": "array",
    "transforms.unwrap.delete.tombstone.handling.mode": "delete-to-tombstone",
    "transforms.unwrap.sanitize.field.names": "true",
    "transforms.unwrap.drop.fields.header.name": "dropped",
    "transforms.unwrap.add.fields": "op,db,source.collection,transaction.id",
}
OID = ObjectId("5f1a2b3c4d5e6f7a8b9c0d1e")
DOCUMENTS = (
    {"a": 1, "b": [1, 2], "c": {}, "e": None, "i": [[1], [2, 3]]},
    {
        "a": "now text",
        "o": OID,
        "d": DatetimeMS(1500000000123),
        "t": Timestamp(5, 6),
        "n": Decimal128("1.50"),
        "l": Int64(5),
        "r": Regex("a", "i"),
        "u": Binary(b"0123456789abcdef", 4),
        "bin": b"\x01",
    },
    {"mixed": [1, 2], "docs": [{"a": 1}, {"a": 2}], "deep": {"a": [{"b": [{"c": 1}]}]}, "bool": [True, False]},
    {"field name": 1, "1st": 2, "a-b": {"c.d": 3}, "ü": 4, "$x": 5, "": 6},
)


def setup(client):
    for number, document in enumerate(DOCUMENTS):
        client.db1.docs.insert_one({"_id": number, **document})
    client.db1.docs.insert_one({"_id": {"x": 1, "y": "z"}, "k": 1})
    client.db1.docs.insert_one({"_id": OID, "k": 1})


def run(client):
    docs = client.db1.docs
    for number, document in enumerate(DOCUMENTS):
        docs.insert_one({"_id": f"s{number}", **document})
    docs.update_one({"_id": 0}, {"$set": {"b": [1, 2], "new": {"x": [1]}}})
    yield "wait"
    docs.update_one({"_id": 1}, {"$unset": {"a": ""}})
    docs.delete_one({"_id": OID})
    docs.delete_one({"_id": 0})
