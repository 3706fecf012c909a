CREATE TABLE a (id int PRIMARY KEY, v text); CREATE TABLE b (id int, v text); ALTER TABLE b REPLICA IDENTITY FULL;
INSERT INTO a SELECT i, 'v' || i FROM generate_series(1, 6) i; INSERT INTO b SELECT i, 'v' || i FROM generate_series(1, 6) i;
