CREATE TABLE part_a (id int PRIMARY KEY, v text);
CREATE TABLE part_b (id text PRIMARY KEY, w numeric, x int);
CREATE TABLE part_c (v int);
INSERT INTO part_a VALUES (1, 'a');
