-- Keys that change twice in a transaction and over many rows, with fetches of few rows and iterations of one transaction; unchanged updates.
-- @property tombstones.on.delete=false
-- @property max.iteration.transactions=1
-- @property streaming.fetch.size=3
-- @property data.query.mode=direct
-- @property skip.messages.without.change=true
-- @property column.include.list=dbo.tableb.*,dbo.w.id,dbo.w.white
-- @property provide.transaction.metadata=true
CREATE TABLE tableb (id INT NOT NULL PRIMARY KEY, colb VARCHAR(30));
CREATE TABLE w (id INT NOT NULL PRIMARY KEY, white INT, black INT);
INSERT INTO tableb VALUES (1, '1'), (2, '2');
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'tableb', @role_name = NULL, @supports_net_changes = 0; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'w', @role_name = NULL, @supports_net_changes = 0;
-- @run
INSERT INTO tableb VALUES (3, '3'), (4, '4'), (5, '5');
BEGIN TRANSACTION;
UPDATE tableb SET id = id + 300;
UPDATE tableb SET id = id + 300;
COMMIT;
INSERT INTO w VALUES (1, 1, 1);
UPDATE w SET black = 2 WHERE id = 1;
UPDATE w SET white = 2 WHERE id = 1;
UPDATE w SET white = 3, black = 3 WHERE id = 1;
-- @stop
UPDATE tableb SET colb = 'z';
UPDATE tableb SET id = 7 WHERE id = 601;
-- @start
-- @wait
DELETE FROM tableb;
INSERT INTO w VALUES (2, 1, 1);
