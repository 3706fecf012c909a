-- Incremental snapshots of partitioned tables, of keys by message.key.columns, of types in other schemas, of a new table, of odd numbers.
-- @property signal.data.collection=public.debezium_signal
-- @property message.key.columns=public.mk:b,a
-- @property column.propagate.source.type=.*
-- @property publish.via.partition.root=true
-- @property incremental.snapshot.chunk.size=2
-- @compare {"settle_seconds": 2.5, "unordered_reads": true}

CREATE TABLE debezium_signal (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048));
CREATE SCHEMA typ;
CREATE TYPE typ.color AS ENUM ('r', 'g');
CREATE DOMAIN typ.dom AS varchar(9);
CREATE TABLE part (id integer, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10);
CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (10) TO (20);
CREATE TABLE mk (a integer, b integer, v text, PRIMARY KEY (a, b));
CREATE TABLE types (id serial PRIMARY KEY, c typ.color, d typ.dom, e typ.color[], s smallserial, n numeric, v varchar, i interval(3), t timestamp(2) without time zone, z timetz(1), q "char", x bit varying(7));
CREATE TABLE nums (id numeric PRIMARY KEY, v text);
CREATE TABLE reals (id float8 PRIMARY KEY, v text);
INSERT INTO part VALUES (1, 'a'), (2, 'b'), (11, 'c'), (12, 'd'), (13, 'e');
INSERT INTO mk VALUES (1, 3, 'a'), (2, 2, 'b'), (3, 1, 'c');
INSERT INTO types (c, d, e, n, v, i, t, z, q, x) VALUES ('r', 'x', '{r,g}', 1.5, 'v', '1.2345 s', '2024-01-01 01:02:03.456', '01:02:03.45+01', 'q', B'101');
INSERT INTO nums VALUES (1, 'a'), (2.5, 'b'), (-3, 'c');
INSERT INTO reals VALUES (1, 'a'), (-2.5, 'b'), (1e100, 'c');
-- @run
INSERT INTO debezium_signal VALUES ('1', 'execute-snapshot', '{"data-collections": ["public.part"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('2', 'execute-snapshot', '{"data-collections": ["public.mk", "public.types"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('3', 'execute-snapshot', '{"data-collections": ["public.nums"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('4', 'execute-snapshot', '{"data-collections": ["public.reals"]}');
-- @wait
CREATE TABLE fresh (id bigserial PRIMARY KEY, v text);
INSERT INTO fresh (v) VALUES ('a'), ('b'), ('c');
INSERT INTO debezium_signal VALUES ('5', 'execute-snapshot', '{"data-collections": ["public.fresh"]}');
-- @wait
INSERT INTO types (c, d) VALUES ('g', 'y');
UPDATE types SET s = 9;
DELETE FROM part WHERE id = 1;
UPDATE part SET id = 15 WHERE id = 2;
INSERT INTO debezium_signal VALUES ('6', 'execute-snapshot', '{"data-collections": ["public.part_2"]}');
