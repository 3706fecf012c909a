-- The outbox with fields in envelope and headers, schema versions, partitions, a payload whose type changes, arrays and null fields that are expanded.
-- @property transforms=outbox
-- @property transforms.outbox.type=io.debezium.transforms.outbox.EventRouter
-- @property transforms.outbox.predicate=box
-- @property predicates=box
-- @property predicates.box.type=org.apache.kafka.connect.transforms.predicates.TopicNameMatches
-- @property predicates.box.pattern=srv\.box\.outbox
-- @property transforms.outbox.table.field.event.schema.version=version
-- @property transforms.outbox.table.field.event.timestamp=createdat
-- @property transforms.outbox.table.fields.additional.placement=version:envelope:eventVersion,aggregatetype:envelope:aggregateType,somebooltype:envelope:someBoolType,somebooltype:header,is_deleted:envelope:deleted
-- @property transforms.outbox.table.op.invalid.behavior=warn
-- @property schema.include.list=box
CREATE SCHEMA box;
CREATE TABLE box.outbox (id uuid NOT NULL PRIMARY KEY, aggregatetype varchar(255) NOT NULL, aggregateid varchar(255) NOT NULL, type varchar(255) NOT NULL, payload jsonb,
  version integer NOT NULL, somebooltype boolean NOT NULL, createdat timestamp NOT NULL, is_deleted boolean DEFAULT false);
INSERT INTO box.outbox VALUES ('59a42efd-b015-44a9-9dde-cb36d9002425', 'User', '10711fa5', 'UserCreated', '{"email": "gh@mefi.in"}', 1, true, '2019-03-24 20:52:59.123456');
-- @run
INSERT INTO box.outbox VALUES ('f9171eb6-19f3-4579-9206-0e179d2ebad7', 'User', '7bdf2e9e', 'UserCreated', NULL, 1, true, '2019-03-24 20:52:59', true);
INSERT INTO box.outbox VALUES ('f9171eb6-19f3-4579-9206-0e179d2ebad8', 'User', '7bdf2e9e', 'UserUpdated', '{"email": "a", "list": [{"a": 1}, {"a": 2}]}', 2, false, '2019-03-24 20:52:59', NULL);
-- @wait
UPDATE box.outbox SET type = 'other' WHERE version = 2;
DELETE FROM box.outbox;
-- @wait
ALTER TABLE box.outbox ALTER COLUMN payload SET DATA TYPE varchar(1000);
INSERT INTO box.outbox VALUES ('f9171eb6-19f3-4579-9206-0e179d2ebad9', 'User', '7bdf2e9e', 'UserUpdated', '', 3, false, '2019-03-24 20:52:59', NULL);
INSERT INTO box.outbox VALUES ('f9171eb6-19f3-4579-9206-0e179d2ebad0', 'User', '7bdf2e9e', 'UserUpdated', 'plain', 3, false, '2019-03-24 20:52:59', NULL);
