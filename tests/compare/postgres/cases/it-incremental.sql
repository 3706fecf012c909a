-- Incremental snapshots by a source with many keys: numeric, enums, four columns, by message.key.columns, generated and excluded columns, types of a schema, over a restart.
-- @property signal.data.collection=s1.debezium_signal
-- @property schema.include.list=s1
-- @property incremental.snapshot.chunk.size=4
-- @property message.key.columns=s1.a42:pk1,pk2,pk3,pk4;s1.order2:pk2,pk1
-- @property column.exclude.list=s1.gen.gencol
-- @property column.propagate.source.type=s1.udt.*
-- @property decimal.handling.mode=string
-- @property snapshot.mode=no_data
-- @compare {"settle_seconds": 3, "unordered_reads": true, "collapse_topics": ["[._]message$"]}
CREATE SCHEMA s1;
CREATE TYPE s1.mood AS ENUM ('UP', 'DOWN', 'LEFT', 'RIGHT');
CREATE DOMAIN s1.positive AS integer CHECK (VALUE > 0);
CREATE TABLE s1.debezium_signal (id varchar(64), type varchar(32), data varchar(2048));
ALTER TABLE s1.debezium_signal REPLICA IDENTITY FULL;
CREATE TABLE s1.a4 (pk1 integer, pk2 integer, pk3 integer, pk4 integer, aa integer, PRIMARY KEY (pk1, pk2, pk3, pk4));
CREATE TABLE s1.a42 (pk1 integer, pk2 integer, pk3 integer, pk4 integer, aa integer);
CREATE TABLE s1.order2 (pk1 integer, pk2 integer, aa integer, PRIMARY KEY (pk1, pk2));
CREATE TABLE s1.anumeric (pk numeric PRIMARY KEY, aa integer);
CREATE TABLE s1.enumpk (pk s1.mood PRIMARY KEY, aa integer);
CREATE TABLE s1.gen (pk integer PRIMARY KEY, gencol varchar(10) GENERATED ALWAYS AS ('aa') STORED, aa integer, bb varchar(2));
CREATE TABLE s1.udt (pk serial PRIMARY KEY, mood s1.mood, amount s1.positive);
CREATE TABLE s1.part (pk serial, aa integer, PRIMARY KEY (pk, aa)) PARTITION BY RANGE (aa);
CREATE TABLE s1.part1 PARTITION OF s1.part FOR VALUES FROM (0) TO (500);
CREATE TABLE s1.part2 PARTITION OF s1.part FOR VALUES FROM (500) TO (1000);
INSERT INTO s1.a4 SELECT i / 1000, i / 100 % 10, i / 10 % 10, i % 10, i FROM generate_series(1, 1200, 100) i;
INSERT INTO s1.a42 SELECT i / 1000, i / 100 % 10, i / 10 % 10, i % 10, i FROM generate_series(1, 1200, 100) i;
INSERT INTO s1.order2 VALUES (3, 1, 0), (2, 2, 1), (1, 2, 2), (1, 1, 3), (4, 1, 4);
INSERT INTO s1.anumeric SELECT i, i FROM generate_series(1, 5) i;
INSERT INTO s1.enumpk VALUES ('DOWN', 1), ('UP', 2), ('RIGHT', 3);
INSERT INTO s1.gen (pk, aa, bb) VALUES (1, 1, 'a');
INSERT INTO s1.udt (mood, amount) VALUES ('UP', 5);
INSERT INTO s1.part (aa) VALUES (1), (700), (2), (800);
-- @run
INSERT INTO s1.debezium_signal VALUES ('1', 'execute-snapshot', '{"data-collections": ["s1.a4", "s1.a42", "s1.order2"]}');
-- @wait
INSERT INTO s1.debezium_signal VALUES ('2', 'execute-snapshot', '{"data-collections": ["s1.anumeric", "s1.enumpk", "s1.gen", "s1.udt"]}');
-- @wait
INSERT INTO s1.gen (pk, aa, bb) VALUES (2, 2, 'b');
INSERT INTO s1.udt (mood, amount) VALUES ('DOWN', 6);
INSERT INTO s1.debezium_signal VALUES ('3', 'execute-snapshot', '{"data-collections": ["s1.part", "s1.part1"]}');
-- @wait
INSERT INTO s1.debezium_signal VALUES ('4', 'log', '{"message": "at {}"}');
INSERT INTO s1.debezium_signal VALUES ('5', 'schema-changes', '{"database": "golden", "changes": []}');
DELETE FROM s1.debezium_signal WHERE id = '1';
UPDATE s1.debezium_signal SET type = 'x' WHERE id = '2';
-- @wait
CREATE TABLE s1.later (pk serial PRIMARY KEY, aa integer);
INSERT INTO s1.later (aa) VALUES (1);
-- @wait
INSERT INTO s1.debezium_signal VALUES ('6', 'execute-snapshot', '{"data-collections": ["s1.later"]}');
