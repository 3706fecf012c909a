-- Topics by expressions, keys kept apart, heartbeats, transactions, messages.
-- @property topic.naming.strategy=io.debezium.schema.SchemaRegexTopicNamingStrategy
-- @property topic.regex=srv\.public\.orders_(.*)
-- @property topic.replacement=all.orders
-- @property topic.key.enforce.uniqueness=true
-- @property topic.key.field.name=shard
-- @property topic.key.field.regex=srv\.public\.orders_(.*)
-- @property topic.key.field.replacement=$1
-- @property provide.transaction.metadata=true
-- @property schema.name.adjustment.mode=avro
CREATE TABLE orders_1 (id integer PRIMARY KEY, v text);
CREATE TABLE orders_2 (id integer PRIMARY KEY, w text);
CREATE TABLE orders_3 (w text);
CREATE TABLE other (id integer PRIMARY KEY, w text);
ALTER TABLE orders_3 REPLICA IDENTITY FULL;
INSERT INTO orders_1 VALUES (1, 'v');
INSERT INTO orders_2 VALUES (1, 'v');
-- @run
INSERT INTO orders_1 VALUES (2, 'v');
UPDATE orders_1 SET id = 3 WHERE id = 2;
DELETE FROM orders_2;
INSERT INTO orders_3 VALUES ('x');
DELETE FROM orders_3;
INSERT INTO other VALUES (1, 'x');
