-- Transforms of Debezium 3.7: ToLogicalTopicRouter for tables, empty arrays in the payloads of an outbox. An engine of 3.7 records it.
-- @property transforms=outbox,route
-- @property transforms.outbox.type=io.debezium.transforms.outbox.EventRouter
-- @property transforms.outbox.table.expand.json.payload=true
-- @property transforms.outbox.table.json.payload.empty.array.behavior=optional_string
-- @property transforms.outbox.predicate=isOutbox
-- @property transforms.route.type=io.debezium.transforms.ToLogicalTopicRouter
-- @property transforms.route.topic.regex=(.*)\.part_(.*)
-- @property transforms.route.topic.replacement=$1.parts
-- @property transforms.route.key.field.regex=.*\.part_(.*)
-- @property transforms.route.key.field.replacement=$1
-- @property transforms.route.logical.destination.cache.size=4
-- @property predicates=isOutbox
-- @property predicates.isOutbox.type=org.apache.kafka.connect.transforms.predicates.TopicNameMatches
-- @property predicates.isOutbox.pattern=.*outbox
CREATE TABLE outbox (id int PRIMARY KEY, aggregatetype text NOT NULL, aggregateid text NOT NULL, type text NOT NULL, payload text);
CREATE TABLE part_a (id int PRIMARY KEY, v text);
CREATE TABLE part_b (id int PRIMARY KEY, v text);
CREATE TABLE other (id int PRIMARY KEY, v text);
-- @run
INSERT INTO outbox VALUES (1, 'order', '7', 'Made', '{"a":[],"b":[1],"c":{"d":[]},"e":[[],[]]}');
INSERT INTO outbox VALUES (2, 'order', '7', 'Made', '{"items":[{"x":[]},{"x":[]}]}');
INSERT INTO outbox VALUES (3, 'order', '8', 'Made', '{"items":[]}');
INSERT INTO part_a VALUES (1, 'a'); INSERT INTO part_b VALUES (1, 'b'); INSERT INTO other VALUES (1, 'c');
UPDATE part_a SET v = 'x'; DELETE FROM part_b;
