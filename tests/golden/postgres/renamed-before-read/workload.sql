INSERT INTO r VALUES (2,'b');
-- @wait
-- @stop
INSERT INTO r VALUES (3,'c');
ALTER TABLE r RENAME TO r2;
INSERT INTO r2 VALUES (4,'d');
-- @start
-- @wait
INSERT INTO r2 VALUES (5,'e');
