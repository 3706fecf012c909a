INSERT INTO customers (email,vip) VALUES ('c@x.org',true);
BEGIN;
INSERT INTO orders (customer,total,due,wait,doc,photo) VALUES (3,99.99,'2024-12-31','-1 day','{"b": null}','\x00');
UPDATE orders SET total = total + 1 WHERE customer = 1;
DELETE FROM orders WHERE customer = 2;
COMMIT;
UPDATE customers SET id = 20 WHERE id = 2;
DELETE FROM customers WHERE id = 20;
