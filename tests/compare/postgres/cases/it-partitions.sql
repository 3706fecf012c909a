-- A partitioned table by its root; unique columns and indexes of expressions for keys.
-- @property table.include.list=public.first_table, public.nopk.*, public.root
-- @property publication.autocreate.mode=filtered
-- @property publish.via.partition.root=true
-- @property provide.transaction.metadata=true
CREATE TABLE first_table (pk integer PRIMARY KEY, user_id integer);
CREATE TABLE parted (pk serial, user_id integer, aa integer) PARTITION BY RANGE (user_id);
CREATE TABLE parted_1_100 PARTITION OF parted (CONSTRAINT p_1_100_pk PRIMARY KEY (pk)) FOR VALUES FROM (1) TO (101);
CREATE TABLE parted_101_200 PARTITION OF parted (CONSTRAINT p_101_200_pk PRIMARY KEY (pk)) FOR VALUES FROM (101) TO (201);
CREATE TABLE root (pk serial, aa integer, PRIMARY KEY (pk, aa)) PARTITION BY RANGE (aa);
CREATE TABLE root1 PARTITION OF root FOR VALUES FROM (0) TO (500);
CREATE TABLE root2 PARTITION OF root FOR VALUES FROM (500) TO (1000);
CREATE TABLE nopk1 (pk integer UNIQUE, val integer);
CREATE TABLE nopk2 (pk integer UNIQUE, val integer UNIQUE);
CREATE TABLE nopk3 (pk integer, val integer);
CREATE TABLE nopk4 (a integer, b integer);
CREATE UNIQUE INDEX ON nopk4 (a, COALESCE(b, 0));
INSERT INTO first_table VALUES (1000, 1);
INSERT INTO parted (user_id, aa) VALUES (1, 1), (150, 2), (99, 3);
INSERT INTO root VALUES (0, 0), (1, 700);
INSERT INTO nopk1 VALUES (1, 10);
INSERT INTO nopk2 VALUES (2, 20);
INSERT INTO nopk3 VALUES (3, 30);
INSERT INTO nopk4 VALUES (4, 40);
-- @run
-- @wait
ALTER TABLE nopk3 REPLICA IDENTITY FULL;
INSERT INTO nopk1 VALUES (11, 110);
INSERT INTO nopk2 VALUES (12, 120);
UPDATE nopk3 SET val = 300;
DELETE FROM nopk3;
INSERT INTO nopk4 VALUES (14, NULL);
INSERT INTO root VALUES (3, 3), (501, 501);
UPDATE root SET aa = 600 WHERE pk = 3;
INSERT INTO first_table VALUES (1001, 1);
