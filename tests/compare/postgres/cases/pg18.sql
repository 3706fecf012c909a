-- PostgreSQL 18: virtual generated columns, those that a publication sends, keys without overlaps, uuidv7, infinite intervals.
-- @compare {"server": 18}
-- @property publication.autocreate.mode=disabled
-- @property skipped.operations=none
CREATE TABLE g (id integer PRIMARY KEY, a integer, v integer GENERATED ALWAYS AS (a * 2) VIRTUAL, s integer GENERATED ALWAYS AS (a * 3) STORED, u uuid DEFAULT uuidv7());
CREATE TABLE n (id integer, i interval, c text NOT NULL NO INHERIT);
INSERT INTO g (id, a, u) VALUES (1, 1, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');
INSERT INTO n VALUES (1, 'infinity', 'x'), (2, '-infinity', 'y');
ALTER TABLE n REPLICA IDENTITY FULL;
CREATE PUBLICATION dbz_publication FOR ALL TABLES WITH (publish_generated_columns = stored);
-- @run
INSERT INTO g (id, a, u) VALUES (2, 1, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');
UPDATE g SET a = 5 WHERE id = 2;
DELETE FROM g WHERE id = 2;
INSERT INTO n VALUES (3, 'infinity', 'x');
DELETE FROM n WHERE id = 3;
