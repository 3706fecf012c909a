-- Built-in tables, temporary ones, lists by expressions with upper case; keys of excluded columns; comments.
-- @property table.ignore.builtin=false
-- @property table.include.list=PUBLIC.A,public.b_[0-9]+,public\.spatial_ref_sys
-- @property include.schema.comments=true
-- @property column.exclude.list=public.a.(id|x)
-- @property snapshot.delay.ms=50
-- @property streaming.delay.ms=50
CREATE TABLE a (id integer PRIMARY KEY, v text, x text);
CREATE TABLE b_1 (id integer PRIMARY KEY, v text);
CREATE TABLE b_x (id integer PRIMARY KEY, v text);
CREATE TABLE spatial_ref_sys (srid integer PRIMARY KEY, v text);
COMMENT ON TABLE a IS 'table a';
COMMENT ON COLUMN a.id IS 'the "id"';
COMMENT ON COLUMN a.v IS 'ünï';
COMMENT ON COLUMN b_1.v IS '';
INSERT INTO a VALUES (1, 'v', 'x');
INSERT INTO b_1 VALUES (1, 'v');
INSERT INTO b_x VALUES (1, 'v');
INSERT INTO spatial_ref_sys VALUES (1, 'v');
-- @run
INSERT INTO a VALUES (2, 'v', 'x');
UPDATE a SET id = 3 WHERE id = 2;
DELETE FROM a WHERE id = 1;
CREATE TEMP TABLE tmp (id integer PRIMARY KEY);
INSERT INTO tmp VALUES (1);
INSERT INTO b_1 VALUES (2, 'v');
INSERT INTO b_x VALUES (2, 'v');
INSERT INTO spatial_ref_sys VALUES (2, 'v');
