-- Rows with metadata, flattened, hoisted; headers from fields.
-- @property transforms=u,f,s,i,hf
-- @compare {"ignore_topics": ["message$"]}
-- @property transforms.u.type=io.debezium.transforms.ExtractNewRecordState
-- @property transforms.u.add.fields=op,source.schema,source.snapshot,table,before.id:old
-- @property transforms.u.add.headers=op,source.name,table
-- @property transforms.u.add.fields.prefix=meta.
-- @property transforms.u.delete.tombstone.handling.mode=rewrite-with-tombstone
-- @property predicates=orders,tomb
-- @property predicates.orders.type=org.apache.kafka.connect.transforms.predicates.TopicNameMatches
-- @property predicates.orders.pattern=srv\.public\..*
-- @property predicates.tomb.type=org.apache.kafka.connect.transforms.predicates.RecordIsTombstone
-- @property transforms.f.type=org.apache.kafka.connect.transforms.HoistField$Value
-- @property transforms.f.field=row
-- @property transforms.f.predicate=tomb
-- @property transforms.f.negate=true
-- @property transforms.s.type=org.apache.kafka.connect.transforms.Flatten$Value
-- @property transforms.s.delimiter=_
-- @property transforms.s.predicate=tomb
-- @property transforms.s.negate=true
-- @property transforms.i.type=org.apache.kafka.connect.transforms.InsertField$Value
-- @property transforms.i.static.field=site
-- @property transforms.i.static.value=x
-- @property transforms.i.topic.field=topic
-- @property transforms.i.predicate=tomb
-- @property transforms.i.negate=true
-- @property transforms.hf.type=org.apache.kafka.connect.transforms.HeaderFrom$Value
-- @property transforms.hf.fields=topic
-- @property transforms.hf.headers=where
-- @property transforms.hf.operation=move
-- @property transforms.hf.predicate=tomb
-- @property transforms.hf.negate=true

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
