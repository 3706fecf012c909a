CREATE TABLE a (id int PRIMARY KEY, v text);
INSERT INTO a VALUES (1, 'a'), (2, 'b');
CREATE TABLE b (id int PRIMARY KEY, n numeric(10,2));
INSERT INTO b VALUES (1, 1.25), (2, 2.25);
CREATE TABLE c (id int PRIMARY KEY, v text);
INSERT INTO c VALUES (1, 'a'), (2, 'b');
