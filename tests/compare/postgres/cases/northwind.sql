-- A schema after Northwind: small integers, bpchar keys, REAL, BYTEA, composite keys, a table without rows.
-- @property decimal.handling.mode=string
-- @property time.precision.mode=connect
-- @property column.propagate.source.type=.*

CREATE TABLE customer_demographics (customer_type_id bpchar NOT NULL, customer_desc text, PRIMARY KEY (customer_type_id));
CREATE TABLE customers (customer_id character varying(5) NOT NULL PRIMARY KEY, company_name varchar(40) NOT NULL, region varchar(15));
CREATE TABLE categories (category_id smallint NOT NULL PRIMARY KEY, category_name varchar(15) NOT NULL, description text, picture bytea);
CREATE TABLE orders (order_id smallint NOT NULL PRIMARY KEY, customer_id varchar(5) REFERENCES customers, order_date date,
  required_date date NOT NULL DEFAULT '1996-08-01', freight real NOT NULL DEFAULT 0, ship_name varchar(40));
CREATE TABLE order_details (order_id smallint NOT NULL REFERENCES orders ON UPDATE CASCADE ON DELETE CASCADE, product_id smallint NOT NULL,
  unit_price real NOT NULL, quantity smallint NOT NULL, discount real NOT NULL, PRIMARY KEY (order_id, product_id));
CREATE TABLE us_states (state_id smallint NOT NULL, state_name varchar(100), state_abbr character(2), CONSTRAINT pk_usstates PRIMARY KEY (state_id));
ALTER TABLE us_states REPLICA IDENTITY NOTHING;
INSERT INTO customers VALUES ('ALFKI', 'Alfreds Futterkiste', NULL), ('ANATR', 'Ana Trujillo', 'WA');
INSERT INTO categories VALUES (1, 'Beverages', 'Soft drinks', '\x'), (2, 'Condiments', NULL, NULL);
INSERT INTO orders VALUES (10248, 'ALFKI', '1996-07-04', '1996-08-01', 32.38, 'Vins'), (10249, NULL, NULL, DEFAULT, DEFAULT, NULL);
INSERT INTO order_details VALUES (10248, 11, 14, 12, 0), (10248, 42, 9.8, 10, 0.15), (10249, 1, 3.4e38, 1, 1e-10);
INSERT INTO us_states VALUES (1, 'Alabama', 'AL');
-- @run
INSERT INTO customer_demographics VALUES ('VIP', NULL), ('x ', '');
UPDATE customer_demographics SET customer_type_id = 'OLD' WHERE customer_type_id = 'VIP';
INSERT INTO us_states VALUES (2, 'Alaska', 'AK');
UPDATE order_details SET discount = discount + 0.05, unit_price = unit_price * 1.1 WHERE order_id = 10248;
DELETE FROM orders WHERE order_id = 10248;
UPDATE orders SET order_id = 1, freight = 'NaN';
DELETE FROM customers WHERE customer_id = 'ANATR';
UPDATE categories SET picture = '\xff00' WHERE category_id = 1;
BEGIN;
INSERT INTO categories VALUES (3, 'Gone', NULL, NULL);
SAVEPOINT a;
INSERT INTO categories VALUES (4, 'Never', NULL, NULL);
ROLLBACK TO a;
INSERT INTO categories VALUES (5, 'Kept', NULL, NULL) ON CONFLICT DO NOTHING;
INSERT INTO categories VALUES (5, 'Twice', NULL, NULL) ON CONFLICT (category_id) DO UPDATE SET category_name = excluded.category_name;
DELETE FROM categories WHERE category_id = 3;
COMMIT;
