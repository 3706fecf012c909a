INSERT INTO customers (id, email) VALUES (2, 'd@e.f');
UPDATE customers SET name = 'Bé', v = 1e10 WHERE id = 2;
DELETE FROM customers WHERE id = 1;
UPDATE customers SET id = 3 WHERE id = 2;
