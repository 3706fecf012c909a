-- Incremental snapshots that fail, are empty, have no key, are unknown; conditions by expressions; other forms of data.
-- @property signal.data.collection=public.debezium_signal
-- @property incremental.snapshot.chunk.size=2
-- @property notification.enabled.channels=sink
-- @property notification.sink.topic.name=notes
-- @property provide.transaction.metadata=true
-- @compare {"settle_seconds": 3, "unordered_reads": true}
CREATE TABLE debezium_signal (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048));
CREATE TABLE t1 (id integer PRIMARY KEY, v text);
CREATE TABLE t2 (id integer PRIMARY KEY, v text);
CREATE TABLE nokey (id integer, v text);
CREATE TABLE empty (id integer PRIMARY KEY, v text);
INSERT INTO t1 SELECT i, 'v' || i FROM generate_series(1, 4) i;
INSERT INTO t2 SELECT i, 'v' || i FROM generate_series(1, 3) i;
INSERT INTO nokey VALUES (1, 'x');
-- @run
INSERT INTO debezium_signal VALUES ('1', 'execute-snapshot', '{"data-collections": ["public.nokey", "public.t1"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('2', 'execute-snapshot', '{"data-collections": ["public.empty"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('3', 'execute-snapshot', '{"data-collections": ["public.t1"], "additional-conditions": [{"data-collection": "public.t1", "filter": "nocolumn = 1"}, {"data-collection": "public.t2", "filter": "id <> 2"}]}');
-- @wait
INSERT INTO debezium_signal VALUES ('4', 'execute-snapshot', '{"data-collections": ["public.t1"], "additional-conditions": [{"data-collection": "PUBLIC.T.", "filter": "id > 2"}]}');
-- @wait
INSERT INTO debezium_signal VALUES ('5', 'execute-snapshot', '{"data-collections": ["public.nokey"], "surrogate-key": "id"}');
-- @wait
INSERT INTO debezium_signal VALUES ('6', 'execute-snapshot', '{"data-collections": ["public.t1"], "surrogate-key": "v"}');
-- @wait
INSERT INTO debezium_signal VALUES ('7', 'execute-snapshot', '{"data-collections": ["public.t1"], "surrogate-key": "nocolumn"}');
-- @wait
INSERT INTO debezium_signal VALUES ('8', 'stop-snapshot', '{"type": "incremental"}');
INSERT INTO debezium_signal VALUES ('9', 'execute-snapshot', '{"data-collections": ["public.absent"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('10', 'execute-snapshot', '{"data-collections": ["public.t1", 7]}');
INSERT INTO debezium_signal VALUES ('11', 'execute-snapshot', '{"type": "unknown", "data-collections": ["public.t1"]}');
INSERT INTO debezium_signal VALUES ('12', 'execute-snapshot', '{"data-collections": [" public.t2 "]}');
-- @wait
INSERT INTO debezium_signal VALUES ('13', 'log', '{"message": "at {}"}');
INSERT INTO t1 VALUES (12, 'z');
