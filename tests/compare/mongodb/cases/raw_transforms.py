"""Transforms of Kafka Connect and Debezium on change events of documents, without rows in their place."""

from collections.abc import Iterator
from typing import Any

_APACHE = "org.apache.kafka.connect.transforms."
PROPERTIES = {
    "database.include.list": "inventory",
    "capture.mode": "change_streams_update_full_with_pre_image",
    "tombstones.on.delete": "false",
    "transforms": "zone,time,head,flat,key,part,route",
    "transforms.zone.type": "io.debezium.transforms.TimezoneConverter",
    "transforms.zone.converted.timezone": "Europe/Berlin",
    "transforms.time.type": _APACHE + "InsertField$Value",
    "transforms.time.timestamp.field": "at",
    "transforms.time.topic.field": "topic!",
    "transforms.head.type": _APACHE + "HeaderFrom$Value",
    "transforms.head.fields": "op",
    "transforms.head.headers": "op",
    "transforms.head.operation": "copy",
    "transforms.part.type": "io.debezium.transforms.partitions.PartitionRouting",
    "transforms.part.partition.payload.fields": "source.collection,op,transaction",
    "transforms.part.partition.topic.num": "7",
    "transforms.flat.type": _APACHE + "Flatten$Key",
    "transforms.key.type": _APACHE + "ReplaceField$Key",
    "transforms.key.renames": "id:_id",
    "transforms.route.type": _APACHE + "RegexRouter",
    "transforms.route.regex": r"(.*)\.(.*)",
    "transforms.route.replacement": "$2-$1",
}
COMPARE = {"partitions": True}


def setup(client: Any) -> None:
    client.inventory.create_collection("docs", changeStreamPreAndPostImages={"enabled": True})
    client.inventory.docs.insert_one({"_id": 1, "name": "a"})


def run(client: Any) -> Iterator[str]:
    docs = client.inventory.docs
    docs.insert_one({"_id": "x", "name": "b"})
    yield "wait"
    docs.update_one({"_id": "x"}, {"$set": {"name": "c"}})
    yield "wait"
    docs.replace_one({"_id": "x"}, {"other": 1})
    yield "wait"
    docs.delete_one({"_id": "x"})
    yield "wait"
