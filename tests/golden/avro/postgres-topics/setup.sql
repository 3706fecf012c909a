CREATE TABLE things (id int PRIMARY KEY, name text);
COMMENT ON TABLE things IS 'Things "here"';
COMMENT ON COLUMN things.name IS 'a name';
CREATE TABLE free (a int NOT NULL, b text, c text);
ALTER TABLE free REPLICA IDENTITY FULL;
INSERT INTO things VALUES (1, 'one');
