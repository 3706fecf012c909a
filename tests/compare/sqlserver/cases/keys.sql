-- Keys: of several columns, of a unique index, by message.key.columns, changed keys, rows that swap keys, identity.
-- @property message.key.columns=dbo.m:v,id;(.*).n:v
-- @property column.propagate.source.type=.*
CREATE TABLE k (b VARCHAR(5) NOT NULL, a INT NOT NULL, v INT, CONSTRAINT pk_k PRIMARY KEY (a, b));
CREATE TABLE u (id INT NOT NULL, c VARCHAR(5), v INT);
CREATE UNIQUE INDEX u_c ON u (c);
CREATE TABLE m (id INT IDENTITY(10,5) PRIMARY KEY, v VARCHAR(5));
CREATE TABLE n (id INT, v VARCHAR(5));
INSERT INTO k VALUES ('x', 1, 1), ('y', 1, 2);
INSERT INTO u VALUES (1, 'a', 1), (2, NULL, 2);
INSERT INTO m (v) VALUES ('a'), (NULL);
INSERT INTO n VALUES (1, 'a'), (NULL, NULL);
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'k', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'u', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'm', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'n', @role_name = NULL, @supports_net_changes = 0;
-- @run
UPDATE k SET b = 'z' WHERE b = 'x';
UPDATE k SET a = a + 1;
UPDATE u SET c = 'b' WHERE id = 1;
DELETE FROM u;
-- @wait
UPDATE m SET v = 'b';
DELETE FROM m WHERE v = 'b';
UPDATE n SET v = 'c';
UPDATE n SET id = 5;
DELETE FROM n;
BEGIN TRANSACTION;
INSERT INTO k VALUES ('q', 9, 9);
UPDATE k SET v = 10 WHERE a = 9;
UPDATE k SET a = 10 WHERE a = 9;
DELETE FROM k WHERE a = 10;
COMMIT;
INSERT INTO m (v) VALUES ('last');
