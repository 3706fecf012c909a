INSERT INTO people VALUES (3, ('z', 3));
-- @wait
ALTER TYPE address ADD ATTRIBUTE city text;
ALTER TYPE mood RENAME VALUE 'sad' TO 'blue';
INSERT INTO people VALUES (4, ('z', 3, 'c'));
-- @wait
ALTER TYPE address DROP ATTRIBUTE street;
ALTER TABLE people ADD COLUMN n int;
-- @wait
