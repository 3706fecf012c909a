-- Enums: two of a name in different schemas, quoted ones, as keys, in arrays, with defaults; a label that is added.
-- @property datatype.propagate.source.type=.+\..*
-- @property decimal.handling.mode=double

CREATE SCHEMA s2;
CREATE TYPE color AS ENUM ('red', 'green');
CREATE TYPE s2.color AS ENUM ('rouge', 'vert', 'it''s', 'a,b');
CREATE TYPE "Status" AS ENUM ('New', 'in progress', '');
CREATE TABLE one (id color PRIMARY KEY, a color NOT NULL DEFAULT 'red', b s2.color DEFAULT 'it''s', c "Status" DEFAULT 'in progress', d color[], e s2.color[] DEFAULT '{vert}', f "Status"[] NOT NULL DEFAULT '{}');
CREATE TABLE s2.two (id integer, k "Status" NOT NULL, c s2.color NOT NULL DEFAULT 'a,b', PRIMARY KEY (k, id));
INSERT INTO one VALUES ('red', DEFAULT, DEFAULT, DEFAULT, '{red,green}', DEFAULT, DEFAULT), ('green', 'green', NULL, NULL, NULL, NULL, '{New,""}');
INSERT INTO s2.two VALUES (1, 'New'), (2, '');
-- @run
UPDATE one SET b = 'a,b', d = '{}' WHERE id = 'red';
UPDATE s2.two SET k = 'in progress' WHERE id = 1;
DELETE FROM one WHERE id = 'green';
DELETE FROM s2.two WHERE id = 2;
-- @wait
ALTER TYPE color ADD VALUE 'blue' AFTER 'red';
INSERT INTO one (id) VALUES ('blue');
ALTER TYPE color RENAME VALUE 'green' TO 'lime';
INSERT INTO one (id, a) VALUES ('red', 'lime') ON CONFLICT (id) DO UPDATE SET a = 'blue';
CREATE TYPE late AS ENUM ('x', 'y');
ALTER TABLE one ADD COLUMN l late DEFAULT 'y';
UPDATE one SET l = 'x';
CREATE TABLE third (id integer PRIMARY KEY, l late[], c color);
INSERT INTO third VALUES (1, '{x,y}', 'blue');
