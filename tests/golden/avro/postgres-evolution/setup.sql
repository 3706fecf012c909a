CREATE TABLE items (id int PRIMARY KEY, name text, amount int NOT NULL DEFAULT 1);
INSERT INTO items VALUES (1, 'one');
