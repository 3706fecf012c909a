CREATE TABLE orders (id int PRIMARY KEY, v text);
INSERT INTO orders VALUES (1,'old1'),(2,'old2'),(3,'old3');
CREATE TABLE others (id int PRIMARY KEY, v text);
INSERT INTO others VALUES (1,'a');
