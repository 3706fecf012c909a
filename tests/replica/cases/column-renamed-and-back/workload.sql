INSERT INTO a VALUES (3, 'c');
-- @wait
ALTER TABLE b RENAME v TO w;
UPDATE b SET w = 'x' WHERE id = 1;
ALTER TABLE b RENAME w TO v;
ALTER TABLE d ADD COLUMN w int;
UPDATE d SET w = 1 WHERE id = 1;
ALTER TABLE d DROP COLUMN w;
-- @wait
-- @stop
ALTER TABLE a RENAME v TO w;
UPDATE a SET w = 'x' WHERE id = 1;
ALTER TABLE a RENAME w TO v;
ALTER TABLE c ALTER v SET NOT NULL;
UPDATE c SET v = 'x' WHERE id = 1;
-- @start
UPDATE a SET v = 'y' WHERE id = 2;
-- @wait
