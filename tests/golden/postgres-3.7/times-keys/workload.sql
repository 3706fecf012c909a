UPDATE k SET v = 4 WHERE v = 3;
UPDATE k SET d = '2021-02-03' WHERE v = 1;
DELETE FROM k WHERE v = 2;
INSERT INTO k (d, t, v) VALUES ('1999-12-31', '23:59:59.999', 5);
DELETE FROM m;
INSERT INTO m VALUES ('1999-12-31 23:59:59.999999+00', 6), ('2030-01-01 00:00+00', 7), ('2031-01-01 00:00+00', 8);
UPDATE clock SET t = '23:59';
DELETE FROM clock;
-- @wait
INSERT INTO debezium_signal VALUES ('s1', 'execute-snapshot', '{"type": "incremental", "data-collections": ["public.k"]}');
