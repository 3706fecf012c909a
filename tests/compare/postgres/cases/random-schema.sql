-- A shop after public sample schemas: check constraints, exclusion by triggers, audit tables, JSON, arrays, inheritance, views with rules, comments.
-- @property include.schema.comments=false
-- @property decimal.handling.mode=double
-- @property interval.handling.mode=string
-- @property time.precision.mode=isostring
CREATE SCHEMA shop;
CREATE SCHEMA audit;
CREATE TYPE shop.status AS ENUM ('new', 'paid', 'shipped');
CREATE DOMAIN shop.email AS varchar(120) CHECK (VALUE ~ '@');
CREATE DOMAIN shop.price AS numeric(12,2) DEFAULT 0 CHECK (VALUE >= 0);
CREATE TABLE shop.customer (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, mail shop.email NOT NULL UNIQUE, name varchar(80), born date, tags text[] NOT NULL DEFAULT '{}', prefs jsonb NOT NULL DEFAULT '{}'::jsonb, created timestamptz NOT NULL DEFAULT now(), active boolean NOT NULL DEFAULT TRUE);
COMMENT ON TABLE shop.customer IS 'people';
COMMENT ON COLUMN shop.customer.mail IS 'where to write';
CREATE TABLE shop.item (sku char(8) PRIMARY KEY, title text NOT NULL, cost shop.price NOT NULL, weight real, dims double precision[], photo bytea, avail daterange, search tsvector GENERATED ALWAYS AS (to_tsvector('simple', title)) STORED);
CREATE TABLE shop."order" (id serial, customer bigint REFERENCES shop.customer ON DELETE CASCADE, state shop.status NOT NULL DEFAULT 'new', placed timestamp(0) without time zone DEFAULT CURRENT_TIMESTAMP, wait interval DEFAULT '00:30:00', ip inet, PRIMARY KEY (id));
CREATE TABLE shop.line ("order" integer REFERENCES shop."order" ON DELETE CASCADE, no smallint, sku char(8) REFERENCES shop.item ON UPDATE CASCADE, qty integer NOT NULL DEFAULT 1 CHECK (qty > 0), price numeric(12,2) NOT NULL, total numeric GENERATED ALWAYS AS (qty * price) STORED, PRIMARY KEY ("order", no));
CREATE TABLE audit.log (id bigserial, tab regclass, op char(1), old jsonb, new jsonb, who name DEFAULT 'nobody', at timestamptz DEFAULT '2024-01-01 00:00:00+00');
CREATE TABLE shop.base (id integer PRIMARY KEY, v text);
CREATE TABLE shop.child (more integer) INHERITS (shop.base);
CREATE FUNCTION audit.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
INSERT INTO audit.log (op, old, new) VALUES (left(TG_OP, 1), to_jsonb(OLD) - 'created', to_jsonb(NEW) - 'created'); RETURN NULL; END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON shop.customer FOR EACH ROW EXECUTE FUNCTION audit.note();
CREATE VIEW shop.active AS SELECT * FROM shop.customer WHERE active;
INSERT INTO shop.customer (mail, name, born, tags, prefs, created) VALUES ('a@x', 'Ann', '1990-02-28', '{vip,"two words"}', '{"a": {"b": [1]}}', '2024-01-01 10:00:00+00'), ('b@x', NULL, NULL, DEFAULT, DEFAULT, '2024-01-01 10:00:00.5+00');
INSERT INTO shop.item (sku, title, cost, weight, dims, photo, avail) VALUES ('A1', 'a title', 9.99, 0.1, '{1.5,NULL}', '\x00', '[2024-01-01,2024-02-01)'), ('B2', 'b', DEFAULT, NULL, NULL, NULL, NULL);
INSERT INTO shop."order" (customer, placed, ip) VALUES (1, '2024-01-02 03:04:05', '10.0.0.1'), (NULL, NULL, NULL);
INSERT INTO shop.line VALUES (1, 1, 'A1', 2, 9.99), (1, 2, 'B2', DEFAULT, 0);
INSERT INTO shop.child VALUES (1, 'c', 5);
INSERT INTO shop.base VALUES (2, 'b');
-- @run
UPDATE shop.active SET name = 'Annie', prefs = prefs || '{"c": 1}' WHERE id = 1;
UPDATE shop.item SET sku = 'A9', title = 'new title' WHERE sku = 'A1';
DELETE FROM shop.customer WHERE id = 1;
UPDATE ONLY shop.base SET v = 'x';
INSERT INTO shop."order" (customer, state, placed, wait) VALUES (2, 'paid', '2024-01-02 03:04:05.6', '1 day 2 hours') RETURNING id;
WITH gone AS (DELETE FROM shop.item WHERE sku = 'B2' RETURNING *) INSERT INTO shop.item (sku, title, cost) SELECT 'C3', title, cost FROM gone;
INSERT INTO shop.child VALUES (3, 'c3', NULL);
