-- Rows without envelope with metadata, flattened, in topics of other names; keys by ValueToKey.
-- @property include.schema.changes=false
-- @property transforms=u,r,f
-- @property transforms.u.type=io.debezium.transforms.ExtractNewRecordState
-- @property transforms.u.add.fields=op,source.snapshot,source.db,source.event_serial_no:no,before.v:old
-- @property transforms.u.add.headers=op,source.table
-- @property transforms.u.delete.tombstone.handling.mode=rewrite
-- @property transforms.r.type=org.apache.kafka.connect.transforms.RegexRouter
-- @property transforms.r.regex=server1\.testdb\.(.*)\.(.*)
-- @property transforms.r.replacement=$2
-- @property transforms.f.type=org.apache.kafka.connect.transforms.Flatten$Value
-- @property tombstones.on.delete=false
-- @property decimal.handling.mode=string
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v VARCHAR(10), d DECIMAL(8,2) NOT NULL DEFAULT 3, at DATETIME2(6));
INSERT INTO t VALUES (1, 'a', 1, '2024-01-02 03:04:05.678901'), (2, NULL, 2, NULL);
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N't', @role_name = NULL, @supports_net_changes = 0;
-- @run
INSERT INTO t VALUES (3, 'c', 3, NULL);
UPDATE t SET v = 'x', d = 0 WHERE id = 1;
UPDATE t SET id = 10 WHERE id = 2;
DELETE FROM t WHERE id = 3;
