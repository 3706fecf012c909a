INSERT INTO t VALUES (2,'happy','{happy}');
-- @wait
ALTER TYPE mood ADD VALUE 'ok';
INSERT INTO t VALUES (3,'ok','{ok}');
-- @wait
ALTER TABLE t ADD COLUMN x int;
INSERT INTO t VALUES (4,'ok','{ok}',1);
-- @wait
-- @stop
-- @start
-- @wait
INSERT INTO t VALUES (5,'ok','{ok}',1);
