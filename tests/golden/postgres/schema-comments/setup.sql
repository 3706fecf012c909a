CREATE TABLE c (id int PRIMARY KEY, a text DEFAULT 'x');
COMMENT ON TABLE c IS 'the table';
COMMENT ON COLUMN c.id IS 'the id';
COMMENT ON COLUMN c.a IS 'the a';
INSERT INTO c VALUES (1,'a');
