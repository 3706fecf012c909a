CREATE TABLE u (id int PRIMARY KEY, v text);
INSERT INTO u VALUES (1, 'a');
INSERT INTO t VALUES (2, 'b');
-- @wait
INSERT INTO u VALUES (2, 'b');
-- @wait
