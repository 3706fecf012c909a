CREATE TABLE nokey (id int PRIMARY KEY, a text, b text);
CREATE TABLE full_list (id int PRIMARY KEY, a text, b text NOT NULL);
CREATE TABLE pair (x int, y int, a text, PRIMARY KEY (x, y));
INSERT INTO nokey VALUES (1, 'a', 'b'); INSERT INTO full_list VALUES (1, 'a', 'b'); INSERT INTO pair VALUES (1, 1, 'a');
CREATE PUBLICATION pub FOR TABLE nokey (a, b), full_list (id, a), pair (y, a) WITH (publish = 'insert');
