-- Values that are selected again: nulls, large ones, of a row that is gone, in insert, update and delete.
-- @property post.processors=reselector
-- @property post.processors.reselector.type=io.debezium.processors.reselect.ReselectColumnsPostProcessor
-- @property reselector.type=io.debezium.processors.reselect.ReselectColumnsPostProcessor
-- @property reselector.reselect.columns.include.list=testdb.dbo.t:data,dbo.t:large,dbo.c:data
CREATE TABLE t (id INT IDENTITY(1,1) PRIMARY KEY, data VARCHAR(50), data2 INT, large VARCHAR(MAX));
CREATE TABLE c (a INT NOT NULL, b VARCHAR(5) NOT NULL, data VARCHAR(50), PRIMARY KEY (b, a));
INSERT INTO t (data, data2) VALUES ('one', 1), (NULL, 2);
INSERT INTO c VALUES (1, 'x', NULL);
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N't', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'c', @role_name = NULL, @supports_net_changes = 0;
-- @run
-- @wait
INSERT INTO t (data, data2) VALUES (NULL, 3);
-- @wait
UPDATE t SET data2 = 4;
-- @wait
UPDATE t SET data = NULL;
UPDATE c SET data = 'y';
-- @wait
UPDATE c SET a = 2;
DELETE FROM t;
INSERT INTO c VALUES (9, 'e', NULL);
