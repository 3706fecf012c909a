-- Columns that are included, masks, topics by schema, skipped operations, own SELECTs, transactions of filtered tables.
-- @property column.include.list=dbo.a.(id|v|n),sales.b.*
-- @property column.mask.hash.SHA-256.with.salt.abc=dbo.a.v
-- @property column.truncate.to.2.chars=sales.b.v
-- @property table.include.list=dbo.a,sales.b
-- @property provide.transaction.metadata=true
-- @property topic.naming.strategy=io.debezium.schema.SchemaTopicNamingStrategy
-- @property snapshot.select.statement.overrides=dbo.a
-- @property snapshot.select.statement.overrides.dbo.a=SELECT id, v, n FROM dbo.a WHERE id > 1
-- @property heartbeat.interval.ms=0
CREATE SCHEMA sales;
CREATE TABLE a (id INT NOT NULL PRIMARY KEY, v VARCHAR(40), n NUMERIC(6,1) NOT NULL, hidden XML);
CREATE TABLE sales.b (id INT NOT NULL PRIMARY KEY, v VARCHAR(40) NOT NULL, t TIME(3), dt DATETIME);
CREATE TABLE sales.c (id INT NOT NULL PRIMARY KEY);
INSERT INTO a VALUES (1, 'one', 1, NULL), (2, 'two', 2, '<a/>'), (3, NULL, 3, NULL);
INSERT INTO sales.b VALUES (1, 'text', '01:02:03.456', '2024-01-02 03:04:05.677');
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'a', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'sales', @source_name = N'b', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'sales', @source_name = N'c', @role_name = NULL, @supports_net_changes = 0;
-- @run
BEGIN TRANSACTION;
INSERT INTO sales.c VALUES (1);
UPDATE a SET hidden = '<b/>' WHERE id = 1;
UPDATE a SET v = 'uno', n = 1.5 WHERE id = 1;
INSERT INTO sales.b VALUES (2, 'ünïcode', NULL, NULL);
COMMIT;
BEGIN TRANSACTION;
INSERT INTO sales.c VALUES (2);
COMMIT;
BEGIN TRANSACTION;
DELETE FROM a WHERE id = 2;
ROLLBACK;
DELETE FROM a WHERE id = 2;
UPDATE sales.b SET id = 7 WHERE id = 1;
-- @wait
INSERT INTO a VALUES (9, 'end', 0, NULL);
