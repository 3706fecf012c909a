-- Blocking snapshots: expressions, filters, tables that are left out, transactions, overrides, notifications.
-- @property signal.data.collection=public.debezium_signal
-- @property snapshot.mode=no_data
-- @property provide.transaction.metadata=true
-- @property notification.enabled.channels=sink
-- @property notification.sink.topic.name=notes
-- @property table.exclude.list=public.hidden
-- @property snapshot.include.collection.list=public.t.*
-- @property snapshot.select.statement.overrides=public.t2
-- @property snapshot.select.statement.overrides.public.t2=SELECT * FROM public.t2 WHERE id > 2 ORDER BY id
-- @compare {"settle_seconds": 2.5}
CREATE TABLE debezium_signal (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048));
CREATE TABLE t1 (id integer PRIMARY KEY, v text);
CREATE TABLE t2 (id integer PRIMARY KEY, v text);
CREATE TABLE t3 (id integer PRIMARY KEY, v text);
CREATE TABLE u (id integer PRIMARY KEY, v text);
CREATE TABLE hidden (id integer PRIMARY KEY, v text);
INSERT INTO t1 SELECT i, 'v' || i FROM generate_series(1, 4) i;
INSERT INTO t2 SELECT i, 'v' || i FROM generate_series(1, 4) i;
INSERT INTO u SELECT i, 'v' || i FROM generate_series(1, 4) i;
INSERT INTO hidden VALUES (1);
-- @run
INSERT INTO debezium_signal VALUES ('1', 'execute-snapshot', '{"type": "BLOCKING", "data-collections": ["public.t.*"]}');
-- @wait
BEGIN;
INSERT INTO t2 VALUES (10, 'x');
INSERT INTO debezium_signal VALUES ('2', 'execute-snapshot', '{"type": "BLOCKING", "data-collections": ["public.t1", "public.u"], "additional-conditions": [{"data-collection": "public.t1", "filter": "SELECT * FROM public.t1 WHERE id < 3 ORDER BY id DESC"}]}');
COMMIT;
-- @wait
INSERT INTO debezium_signal VALUES ('3', 'execute-snapshot', '{"type": "BLOCKING", "data-collections": ["public.hidden"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('4', 'execute-snapshot', '{"type": "BLOCKING", "data-collections": ["public.u"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('5', 'stop-snapshot', '{"type": "BLOCKING", "data-collections": ["public.u"]}');
INSERT INTO debezium_signal VALUES ('6', 'execute-snapshot', '{"type": "BLOCKING", "data-collections": []}');
INSERT INTO debezium_signal VALUES ('7', 'execute-snapshot', '{"type": "BLOCKING", "data-collections": ["public.t3"]}');
-- @wait
INSERT INTO t1 VALUES (12, 'z');
