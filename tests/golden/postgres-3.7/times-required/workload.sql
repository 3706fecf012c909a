INSERT INTO r (id, d, t, tt, ts, tz, iv, dom, now) VALUES (2, '2020-01-01', '10:00', '10:00+02', '2020-01-01 10:00:00.12', '2020-01-01 10:00:00.123456+00', '-1 day -01:00:00.5', '2020-01-01', NULL);
UPDATE r SET d = '2021-01-01' WHERE id = 1;
UPDATE r SET id = 3 WHERE id = 2;
DELETE FROM r WHERE id = 1;
