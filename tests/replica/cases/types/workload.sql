INSERT INTO numbers SELECT id + 100, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13 FROM numbers;
UPDATE numbers SET id = id + 1000 WHERE id IN (1, 2);
INSERT INTO texts SELECT id + 100, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 FROM texts;
UPDATE texts SET id = id + 1000 WHERE id IN (1, 2);
INSERT INTO binaries SELECT id + 100, c0, c1, c2, c3, c4, c5, c6 FROM binaries;
UPDATE binaries SET id = id + 1000 WHERE id IN (1, 2);
INSERT INTO times SELECT id + 100, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15 FROM times;
UPDATE times SET id = id + 1000 WHERE id IN (1, 2);
INSERT INTO others SELECT id + 100, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20, c21, c22, c23, c24, c25, c26, c27, c28, c29 FROM others;
UPDATE others SET id = id + 1000 WHERE id IN (1, 2);
INSERT INTO arrays SELECT id + 100, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20, c21, c22, c23, c24, c25, c26, c27, c28, c29 FROM arrays;
UPDATE arrays SET id = id + 1000 WHERE id IN (1, 2);
-- @wait
