-- What an incremental and a blocking snapshot make of types, defaults, masks, keys by message.key.columns, generated columns.
-- @property signal.data.collection=public.debezium_signal
-- @property message.key.columns=public.t:tag,id
-- @property column.mask.with.4.chars=public.t.secret
-- @property column.exclude.list=public.t.hidden
-- @property provide.transaction.metadata=true
-- @property notification.enabled.channels=sink
-- @property notification.sink.topic.name=notes
-- @compare {"settle_seconds": 2.5, "unordered_reads": true}

CREATE TABLE debezium_signal (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048));
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN dom AS numeric(6,2);
CREATE TABLE t (id integer PRIMARY KEY, tag text, secret text, hidden text, m mood DEFAULT 'ok', d dom NOT NULL DEFAULT 1.5, n numeric(8,3), ts timestamp(3), tz timetz, iv interval, a text[], b bit(3), j jsonb, mo money, dd date, g integer GENERATED ALWAYS AS (id * 2) STORED, r real, u uuid, p point, by bytea, h name, x int4range);
INSERT INTO t (id, tag, secret, hidden, n, ts, tz, iv, a, b, j, mo, dd, r, u, p, by, h, x) VALUES
 (1, 'b', 'secret', 'h', 1.5, '2024-01-01 00:00:00.1', '12:00:00+02', '1 mon 2 days', '{a,NULL}', B'101', '{"b":1,"a":2}', 12.34, '2024-01-01', 1.1, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '(1,2)', '\x01', 'n', '[1,3)'),
 (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
 (3, 'a', '', '', 0, '1970-01-01', '00:00:00+00', '0', '{}', B'000', 'null', 0, '1970-01-01', 0, '00000000-0000-0000-0000-000000000000', '(0,0)', '\x', '', 'empty');
CREATE TABLE many (id serial PRIMARY KEY, v integer);
INSERT INTO many (v) SELECT i FROM generate_series(1, 30) i;
-- @run
INSERT INTO debezium_signal VALUES ('inc', 'execute-snapshot', '{"data-collections": ["public.t", "public.many"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('block', 'execute-snapshot', '{"type": "blocking", "data-collections": ["public.t"], "additional-conditions": [{"data-collection": "public.t", "filter": "SELECT * FROM public.t WHERE id > 1 ORDER BY id DESC"}]}');
-- @wait
UPDATE t SET tag = 'changed' WHERE id = 1;
DELETE FROM t WHERE id = 2;
-- @wait
INSERT INTO debezium_signal VALUES ('inc2', 'execute-snapshot', '{"data-collections": ["public.t"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('block2', 'execute-snapshot', '{"type": "BLOCKING", "data-collections": ["public.many", "public.t"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('block3', 'execute-snapshot', '{"type": "blocking", "data-collections": ["public.absent", "public.m.*"]}');
