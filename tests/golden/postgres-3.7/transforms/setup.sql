CREATE TABLE outbox (id int PRIMARY KEY, aggregatetype text NOT NULL, aggregateid text NOT NULL, type text NOT NULL, payload text);
CREATE TABLE part_a (id int PRIMARY KEY, v text);
CREATE TABLE part_b (id int PRIMARY KEY, v text);
CREATE TABLE other (id int PRIMARY KEY, v text);
