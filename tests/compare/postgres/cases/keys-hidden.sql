-- Keys that values leave out, of several types, read by a first and a blocking snapshot.
-- @property column.exclude.list=public.a.k,public.a.u,public.c.*,public.d.id
-- @property signal.data.collection=public.debezium_signal
-- @compare {"settle_seconds": 2.5}
CREATE TABLE debezium_signal (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048));
CREATE TABLE a (id integer, k text DEFAULT 'x', u uuid, d date, v text, PRIMARY KEY (k, id, u));
CREATE TABLE c (id integer PRIMARY KEY, v text);
CREATE TABLE d (v text, id integer PRIMARY KEY);
INSERT INTO a VALUES (1, 'k', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '2024-01-01', 'v');
INSERT INTO c VALUES (1, 'k');
-- @run
INSERT INTO a VALUES (2, 'k', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '2024-01-01', 'v');
INSERT INTO c VALUES (2, 'k');
INSERT INTO d VALUES ('v', 2);
DELETE FROM a;
INSERT INTO a VALUES (2, 'k', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '2024-01-01', 'v');
-- @wait
INSERT INTO debezium_signal VALUES ('b', 'execute-snapshot', '{"type": "BLOCKING", "data-collections": ["public.a", "public.c"]}');
