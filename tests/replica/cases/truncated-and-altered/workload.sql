TRUNCATE a, b, c;
INSERT INTO a VALUES (3, 'c');
INSERT INTO b VALUES (3, 3.25);
INSERT INTO c VALUES (3, 'c');
ALTER TABLE a ADD COLUMN at timestamptz DEFAULT clock_timestamp();
ALTER TABLE b ALTER COLUMN n TYPE numeric(10,1);
-- @wait
