CREATE TABLE z (id int PRIMARY KEY, ts timestamp, tz timestamptz, tt timetz, d date, t time);
INSERT INTO z VALUES (1, '2020-01-01 10:00', '2020-01-01 10:00:00.5+00', '10:00+02', '2020-01-01', '10:00');
