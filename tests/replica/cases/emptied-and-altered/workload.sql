TRUNCATE a, b, c, d;
ALTER TABLE a ADD COLUMN n int;
INSERT INTO a VALUES (8, 'h', 9);
ALTER TABLE b ADD COLUMN at timestamptz DEFAULT clock_timestamp();
INSERT INTO b (id, v) VALUES (8, 'h'), (9, 'i');
UPDATE b SET v = 'j' WHERE id = 9;
INSERT INTO c VALUES (3, 'c');
ALTER TABLE c ADD COLUMN at timestamptz DEFAULT clock_timestamp();
INSERT INTO c (id, v) VALUES (8, 'h');
ALTER TABLE d ADD COLUMN n numeric(10,2);
INSERT INTO d VALUES (8, 'h', 1.25);
ALTER TABLE d ALTER COLUMN n TYPE numeric(10,1);
-- @wait
