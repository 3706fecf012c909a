CREATE TABLE customers (id int PRIMARY KEY, email text NOT NULL DEFAULT 'none', name text, p point, born date DEFAULT '2000-01-01', v numeric);
ALTER TABLE customers REPLICA IDENTITY FULL;
INSERT INTO customers VALUES (1, 'a@b.c', 'A', '(1,2)', NULL, 1.5);
