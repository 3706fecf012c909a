CREATE TABLE customers (
  id SERIAL PRIMARY KEY,
  first_name VARCHAR(255) NOT NULL,
  last_name VARCHAR(255) NOT NULL,
  email VARCHAR(255) NOT NULL UNIQUE
);
CREATE TABLE debezium_signal (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32) NOT NULL, data VARCHAR(2048) NULL);
INSERT INTO customers SELECT i, 'first' || i, 'last' || i, 'mail' || i || '@acme.com' FROM generate_series(1, 5) AS i;
CREATE TABLE nothing (id int PRIMARY KEY);