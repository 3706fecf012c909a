-- Tables that are read in chunks by one thread, in the order of their rows, and what notifications tell of them.
-- @property snapshot.max.threads.multiplier=2
-- @property notification.enabled.channels=sink
-- @property notification.sink.topic.name=notes
-- @property snapshot.tables.order.by.row.count=ascending
CREATE TABLE a (id INT NOT NULL PRIMARY KEY, v INT); CREATE TABLE b (id INT NOT NULL, v INT); CREATE TABLE c (id INT NOT NULL PRIMARY KEY, v INT); CREATE TABLE e (id INT NOT NULL PRIMARY KEY, v INT);
INSERT INTO a VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5); INSERT INTO b VALUES (1, 1), (2, 2), (3, 3), (4, 4); INSERT INTO c VALUES (1, 1);
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @role_name = NULL, @supports_net_changes = 0, @source_name =  N'a'; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @role_name = NULL, @supports_net_changes = 0, @source_name =  N'b'; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @role_name = NULL, @supports_net_changes = 0, @source_name =  N'c'; EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @role_name = NULL, @supports_net_changes = 0, @source_name =  N'e';
-- @run
INSERT INTO a VALUES (9, 1);
