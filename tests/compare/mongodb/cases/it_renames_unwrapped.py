"""Renamed fields, in rows by ExtractNewDocumentState with names by Avro's rules."""

from tests.compare.mongodb.cases import it_fields, it_renames

PROPERTIES = {
    **it_renames.PROPERTIES,
    "capture.mode": "change_streams_update_full",
    "field.exclude.list": "*.c1.matrix,*.c1.people,*.c2.matrix,*.c2.people,*.c1.addresses,*.c2.addresses",
    "field.name.adjustment.mode": "avro",
    "transforms": "unwrap",
    "transforms.unwrap.type": "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState",
    "transforms.unwrap.field.name.adjustment.mode": "avro",
    "transforms.unwrap.array.encoding": "array",
    "transforms.unwrap.delete.tombstone.handling.mode": "rewrite",
    "transforms.unwrap.delete.tombstone.handling.mode.rewrite-with-id": "true",
    "transforms.unwrap.add.fields": "db,op:OP",
    "transforms.unwrap.add.fields.prefix": "pre.",
}
setup, run = it_fields.setup, it_fields.run
