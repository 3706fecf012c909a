-- Reads that are skipped: they are not, but truncates come.
-- @property skipped.operations=r
-- @property signal.data.collection=public.debezium_signal
-- @compare {"settle_seconds": 2.5, "unordered_reads": true}
CREATE TABLE debezium_signal (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048));
CREATE TABLE a (id integer PRIMARY KEY, v text);
INSERT INTO a VALUES (1, 'v');
-- @run
INSERT INTO debezium_signal VALUES ('2', 'execute-snapshot', '{"data-collections": ["public.a"]}');
-- @wait
TRUNCATE a;
INSERT INTO a VALUES (1, 'v');
