-- Incremental and blocking snapshots: keys of several types, conditions, a surrogate key, a stop, unknown tables; notifications.
-- No chunk ends between rows of one surrogate key: the engine leaves out those after it (docs/differences.md).
-- @property signal.data.collection=${dbname}.dbo.debezium_signal
-- @property incremental.snapshot.chunk.size=2
-- @property notification.enabled.channels=sink
-- @property notification.sink.topic.name=notes
-- @property column.mask.with.3.chars=dbo.t.secret
-- @compare {"settle_seconds": 6, "unordered_reads": true}
CREATE TABLE debezium_signal (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048));
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'debezium_signal', @role_name = NULL, @supports_net_changes = 0;
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, secret VARCHAR(10), v INT);
CREATE TABLE s (id VARCHAR(10) NOT NULL PRIMARY KEY, v INT);
CREATE TABLE c (a INT NOT NULL, b DATE NOT NULL, v INT, CONSTRAINT pk_c PRIMARY KEY (b, a));
CREATE TABLE g (id UNIQUEIDENTIFIER NOT NULL PRIMARY KEY, v INT);
CREATE TABLE n (v INT);
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, NULL, 1), (4, 'd', 2), (5, 'e', 3);
INSERT INTO s VALUES ('a', 1), ('b c', 2), ('it''s', 3);
INSERT INTO c VALUES (1, '2024-01-01', 1), (2, '2024-01-01', 2), (1, '2024-01-02', 3);
INSERT INTO g VALUES ('6F9619FF-8B86-D011-B42D-00C04FC964FF', 1), ('00000000-0000-0000-0000-000000000001', 2), ('FFFFFFFF-0000-0000-0000-000000000000', 3);
INSERT INTO n VALUES (1), (2);
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N't', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N's', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'c', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'g', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'n', @role_name = NULL, @supports_net_changes = 0;
-- @run
INSERT INTO debezium_signal VALUES ('1', 'execute-snapshot', '{"data-collections": ["testdb.dbo.t", "testdb.dbo.s", "testdb.dbo.c"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('2', 'execute-snapshot', '{"data-collections": ["testdb.dbo.n", "testdb.dbo.absent", "testdb.dbo.s"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('3', 'execute-snapshot', '{"data-collections": ["testdb.dbo.t"], "additional-conditions": [{"data-collection": "testdb.dbo.t", "filter": "v <> 2"}]}');
-- @wait
INSERT INTO debezium_signal VALUES ('4', 'execute-snapshot', '{"data-collections": ["testdb.dbo.t"], "surrogate-key": "v"}');
-- @wait
INSERT INTO debezium_signal VALUES ('5', 'execute-snapshot', '{"type": "blocking", "data-collections": ["testdb.dbo.t", "testdb.dbo.n"], "additional-conditions": [{"data-collection": "testdb.dbo.t", "filter": "SELECT * FROM dbo.t WHERE id > 3"}]}');
-- @wait
INSERT INTO debezium_signal VALUES ('6', 'stop-snapshot', '{}'), ('7', 'strange', NULL), ('8', 'log', '{"message": "x"}');
-- @wait
INSERT INTO debezium_signal VALUES ('9', 'execute-snapshot', '{"data-collections": ["testdb.dbo.(s|c)"]}');
-- @wait
UPDATE t SET secret = 'z' WHERE id = 1;
INSERT INTO debezium_signal VALUES ('10', 'execute-snapshot', '{"data-collections": ["testdb.dbo.t"]}');
-- @wait
DELETE FROM t WHERE id = 2;
