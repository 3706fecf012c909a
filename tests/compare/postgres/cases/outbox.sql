-- The outbox: JSON that is expanded, fields in headers and envelope, deletes and updates, empty payloads.
-- Payloads of one schema are of one type, as the engine names all values of a schema after the first.
-- @property transforms=outbox
-- @property transforms.outbox.type=io.debezium.transforms.outbox.EventRouter
-- @property transforms.outbox.predicate=box
-- @property predicates=box
-- @property predicates.box.type=org.apache.kafka.connect.transforms.predicates.TopicNameMatches
-- @property predicates.box.pattern=srv\.public\.outbox
-- @property transforms.outbox.table.fields.additional.placement=type:header:eventType,n:envelope:number,at:envelope,tenant:header
-- @property transforms.outbox.table.expand.json.payload=true
-- @property transforms.outbox.route.tombstone.on.empty.payload=true
-- @property transforms.outbox.table.field.event.timestamp=at
-- @property transforms.outbox.route.topic.replacement=out.${routedByValue}
-- @property transforms.outbox.table.json.payload.null.behavior=optional_bytes
CREATE TABLE outbox (id uuid PRIMARY KEY, aggregatetype varchar(255) NOT NULL, aggregateid varchar(255) NOT NULL, type varchar(255) NOT NULL, payload jsonb, n integer, at timestamp, tenant text);
CREATE TABLE other (id integer PRIMARY KEY);
-- @run
INSERT INTO outbox VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'Order', '1', 'Created', '{"a": 1, "b": [1, 2.5, 3], "c": null, "d": {"e": "x", "f": [{"g": 1}, {"g": 2, "h": "y"}]}, "i": [], "j": true, "k": 5000000000}', 1, '2024-01-02 03:04:05.678', 't');
INSERT INTO outbox VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12', 'Order', '1', 'Gone', NULL, NULL, '2024-01-02 03:04:05', NULL);
INSERT INTO outbox VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a13', 'Order', 'x', 'Text', '"only text"', 2, '2024-01-02 03:04:05', 't');
INSERT INTO outbox VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a16', 'Custo mer', 'x', 'Empty', '{}', 2, '2024-01-02 03:04:05', 't');
INSERT INTO outbox VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a17', 'Order', '', 'Number', '5', 2, '2024-01-02 03:04:05', 't');
INSERT INTO outbox VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a18', 'Customer', '', 'Mixed', '{"l": [1, null, 2], "m": [null], "n": [[1, 2], [3]], "o": {"p": {}}, "q": 12.25, "r": "\u00fc", "s t": 1}', 2, '2024-01-02 03:04:05', 't');
UPDATE outbox SET n = 9 WHERE type = 'Created';
DELETE FROM outbox;
INSERT INTO other VALUES (1);
