-- A snapshot that is paused, resumed and stopped, with notifications; other rows of the signal table do nothing.
-- @property signal.data.collection=public.debezium_signal
-- @property incremental.snapshot.chunk.size=3
-- @property notification.enabled.channels=sink
-- @property notification.sink.topic.name=notes
-- @property incremental.snapshot.watermarking.strategy=INSERT_DELETE
-- @property table.include.list=public.t,public.u
-- @compare {"settle_seconds": 2.5, "unordered_reads": true}

CREATE TABLE debezium_signal (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048));
CREATE TABLE t (id integer PRIMARY KEY, v text);
CREATE TABLE u (id integer PRIMARY KEY, v text);
CREATE TABLE not_captured (id integer PRIMARY KEY, v text);
INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 8) i;
INSERT INTO u SELECT i, 'v' || i FROM generate_series(1, 4) i;
INSERT INTO not_captured VALUES (1, 'x');
-- @run
INSERT INTO debezium_signal VALUES ('1', 'execute-snapshot', '{"data-collections": ["public.t", "public.not_captured", "public.u"]}');
-- @wait
UPDATE debezium_signal SET data = 'x' WHERE id = '1';
DELETE FROM debezium_signal WHERE id = '1';
INSERT INTO debezium_signal VALUES ('2', 'pause-snapshot', '{"type": "incremental"}'), ('3', 'resume-snapshot', '{}'), ('4', 'stop-snapshot', '{"data-collections": ["public.t"], "type": "incremental"}');
-- @wait
INSERT INTO debezium_signal VALUES ('5', 'execute-snapshot', '{"data-collections": ["public.u"], "additional-conditions": [{"data-collection": "public.u", "filter": "false"}]}');
-- @wait
TRUNCATE t;
INSERT INTO debezium_signal VALUES ('6', 'execute-snapshot', '{"data-collections": ["public.t"]}');
