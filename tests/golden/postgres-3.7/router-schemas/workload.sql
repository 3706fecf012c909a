INSERT INTO part_b VALUES ('1', 1.5, 2);
-- @wait
INSERT INTO part_c VALUES (1);
-- @wait
UPDATE part_a SET v = 'x';
-- @wait
ALTER TABLE part_a ADD COLUMN more int DEFAULT 3;
INSERT INTO part_a VALUES (2, 'b');
-- @wait
DELETE FROM part_b;
