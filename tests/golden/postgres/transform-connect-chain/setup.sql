CREATE TABLE customers (id serial PRIMARY KEY, email varchar(100) NOT NULL, vip boolean DEFAULT false, created timestamptz DEFAULT '2024-01-01 00:00:00+00');
CREATE TABLE orders (id bigserial PRIMARY KEY, customer int NOT NULL REFERENCES customers, total numeric(10,2), placed timestamp(3) NOT NULL DEFAULT '2024-01-01 10:00:00', due date, wait interval, doc jsonb, photo bytea);
INSERT INTO customers (email) VALUES ('a@x.org'),('b@x.org');
INSERT INTO orders (customer,total,due,wait,doc,photo) VALUES (1,10.50,'2024-02-29','1 day 02:03:04.5','{"a": [1, 2]}','\x0102ff'),(2,NULL,NULL,NULL,NULL,NULL);
