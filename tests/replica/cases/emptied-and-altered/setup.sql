CREATE TABLE a (id int PRIMARY KEY, v text);
INSERT INTO a VALUES (1, 'a'), (2, 'b');
CREATE TABLE b (id int PRIMARY KEY, v text);
INSERT INTO b VALUES (1, 'a'), (2, 'b');
CREATE TABLE c (id int PRIMARY KEY, v text);
INSERT INTO c VALUES (1, 'a'), (2, 'b');
CREATE TABLE d (id int PRIMARY KEY, v text);
INSERT INTO d VALUES (1, 'a'), (2, 'b');
