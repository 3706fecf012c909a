"""The outbox with payloads that are expanded, and tombstones for those that are empty."""

from tests.compare.mongodb.cases import it_outbox

PROPERTIES = {
    "collection.include.list": "db.outbox",
    "transforms": "outbox",
    "transforms.outbox.type": "io.debezium.connector.mongodb.transforms.outbox.MongoEventRouter",
    "transforms.outbox.collection.expand.json.payload": "true",
    "transforms.outbox.route.tombstone.on.empty.payload": "true",
    "transforms.outbox.collection.fields.additional.placement": "type:header:eventType",
    "transforms.outbox.collection.op.invalid.behavior": "warn",
}
setup, run = it_outbox.setup, it_outbox.run
