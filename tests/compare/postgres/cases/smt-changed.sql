-- Headers of changed fields, header to value, timezone and rows.
-- @property transforms=c,u,z
-- @property transforms.c.type=io.debezium.transforms.ExtractChangedRecordState
-- @property transforms.c.header.changed.name=Changed
-- @property transforms.c.header.unchanged.name=Same
-- @property transforms.u.type=io.debezium.transforms.ExtractNewRecordState
-- @property transforms.u.add.headers=op
-- @property transforms.u.delete.tombstone.handling.mode=rewrite
-- @property transforms.z.type=io.debezium.transforms.TimezoneConverter
-- @property transforms.z.converted.timezone=+05:30

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
