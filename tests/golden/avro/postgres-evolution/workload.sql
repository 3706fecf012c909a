INSERT INTO items VALUES (2, 'two');
-- @wait
ALTER TABLE items ADD note varchar(20) NOT NULL DEFAULT 'n';
INSERT INTO items VALUES (3, 'three', 3, 'x');
-- @wait
ALTER TABLE items DROP COLUMN name;
UPDATE items SET amount = 5 WHERE id = 3;
-- @wait
ALTER TABLE items ALTER amount TYPE bigint;
ALTER TABLE items RENAME note TO remark;
INSERT INTO items VALUES (4, 9999999999, 'y');
DELETE FROM items WHERE id = 4;
