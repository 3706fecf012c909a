-- Rows without envelope, then keys, casts, masks, times and routes of Kafka Connect.
-- @property transforms=u,k,x,c,m,t,h,r
-- @property transforms.u.type=io.debezium.transforms.ExtractNewRecordState
-- @property transforms.u.add.fields=op,table,source.connector:c
-- @property transforms.u.drop.fields.header.name=dropped
-- @property transforms.u.delete.tombstone.handling.mode=drop
-- @property predicates=orders
-- @property predicates.orders.type=org.apache.kafka.connect.transforms.predicates.TopicNameMatches
-- @property predicates.orders.pattern=srv\.public\.orders
-- @property transforms.k.type=org.apache.kafka.connect.transforms.ValueToKey
-- @property transforms.k.fields=customer,id
-- @property transforms.k.predicate=orders
-- @property transforms.x.type=org.apache.kafka.connect.transforms.ExtractField$Key
-- @property transforms.x.field=customer
-- @property transforms.x.predicate=orders
-- @property transforms.c.type=org.apache.kafka.connect.transforms.Cast$Value
-- @property transforms.c.spec=id:int64,flag:string,big:float64,r:string
-- @property transforms.c.predicate=orders
-- @property transforms.m.type=org.apache.kafka.connect.transforms.MaskField$Value
-- @property transforms.m.fields=customer
-- @property transforms.m.replacement=xxx
-- @property transforms.m.predicate=orders
-- @property transforms.t.type=org.apache.kafka.connect.transforms.ReplaceField$Value
-- @property transforms.t.exclude=by,__c,data
-- @property transforms.t.renames=made:created,at:moment
-- @property transforms.t.predicate=orders
-- @property transforms.h.type=org.apache.kafka.connect.transforms.InsertHeader
-- @property transforms.h.header=team
-- @property transforms.h.value.literal=42
-- @property transforms.r.type=org.apache.kafka.connect.transforms.RegexRouter
-- @property transforms.r.regex=srv\.public\.(.*)
-- @property transforms.r.replacement=$1

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
