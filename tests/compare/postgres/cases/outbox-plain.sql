-- The outbox with names of its own, binary payloads, schema versions, partitions.
-- @property transforms=outbox
-- @property transforms.outbox.type=io.debezium.transforms.outbox.EventRouter
-- @property transforms.outbox.table.field.event.id=event_id
-- @property transforms.outbox.table.field.event.key=k
-- @property transforms.outbox.table.field.event.payload=body
-- @property transforms.outbox.route.by.field=kind
-- @property transforms.outbox.table.field.event.schema.version=ver
-- @property transforms.outbox.table.fields.additional.placement=part:partition,k:header:key2,ver:envelope
-- @property transforms.outbox.table.op.invalid.behavior=warn
-- @property transforms.outbox.route.topic.regex=(.*)y
-- @property transforms.outbox.route.topic.replacement=$1ies
-- @property table.include.list=public.box
-- @compare {"marker": null, "settle_seconds": 2, "partitions": true}
CREATE TABLE box (event_id bigint PRIMARY KEY, k integer, kind text, body bytea, ver integer, part integer);
-- @run
INSERT INTO box VALUES (1, 5, 'story', '\x010203', 1, 0);
INSERT INTO box VALUES (2, NULL, 'city', NULL, 2, 1);
INSERT INTO box VALUES (3, 7, 'plain', '\x', 1, 2);
UPDATE box SET k = 1;
DELETE FROM box;
