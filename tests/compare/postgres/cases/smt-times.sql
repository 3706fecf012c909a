-- Times that are converted; the topic by the record's time is left out, as it is the clock's.
-- @property time.precision.mode=connect
-- @property transforms=u,a,b
-- @property transforms.u.type=io.debezium.transforms.ExtractNewRecordState
-- @property transforms.u.delete.tombstone.handling.mode=drop
-- @property predicates=orders
-- @property predicates.orders.type=org.apache.kafka.connect.transforms.predicates.TopicNameMatches
-- @property predicates.orders.pattern=srv\.public\.orders
-- @property transforms.a.type=org.apache.kafka.connect.transforms.TimestampConverter$Value
-- @property transforms.a.field=made
-- @property transforms.a.target.type=string
-- @property transforms.a.format=yyyy-MM-dd'T'HH:mm:ss.SSS
-- @property transforms.a.predicate=orders
-- @property transforms.b.type=org.apache.kafka.connect.transforms.TimestampConverter$Value
-- @property transforms.b.field=d
-- @property transforms.b.target.type=unix
-- @property transforms.b.unix.precision=microseconds
-- @property transforms.b.predicate=orders

CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE orders (id integer PRIMARY KEY, customer text NOT NULL DEFAULT 'nobody', amount numeric(10,2), made timestamp, at timestamptz, d date, ti time, m mood, tags text[], data jsonb, flag boolean NOT NULL DEFAULT true, big bigint, r real, by bytea);
CREATE TABLE no_key (v text, n integer);
ALTER TABLE no_key REPLICA IDENTITY FULL;
INSERT INTO orders VALUES (1, 'ann', 12.50, '2024-01-02 03:04:05.678901', '2024-01-02 03:04:05+02', '2024-01-02', '03:04:05', 'ok', '{a,b}', '{"a": 1}', false, 5000000000, 1.5, '\\x01'), (2, DEFAULT, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT, NULL, NULL, NULL);
INSERT INTO no_key VALUES ('x', 1), (NULL, NULL);
-- @run
INSERT INTO orders (id, customer, amount) VALUES (3, 'bob', 0);
UPDATE orders SET amount = 13, flag = NOT flag WHERE id = 1;
UPDATE orders SET id = 4 WHERE id = 2;
DELETE FROM orders WHERE id = 3;
UPDATE no_key SET n = 2;
DELETE FROM no_key;
TRUNCATE orders;
INSERT INTO orders (id) VALUES (7);
