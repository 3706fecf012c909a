INSERT INTO orders VALUES (4,'old4');
-- @wait
CREATE TABLE orders_new (id int PRIMARY KEY, v text);
INSERT INTO orders_new VALUES (2,'new2'),(5,'new5');
BEGIN;
DROP TABLE orders;
ALTER TABLE orders_new RENAME TO orders;
COMMIT;
INSERT INTO orders VALUES (6,'new6');
-- @sleep 12
INSERT INTO others VALUES (2,'b');
-- @wait
UPDATE others SET v = 'c' WHERE id = 1;
-- @wait
