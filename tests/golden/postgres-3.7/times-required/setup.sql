CREATE DOMAIN day AS date;
CREATE TABLE r (id int PRIMARY KEY, d date NOT NULL, t time NOT NULL, tt timetz NOT NULL, ts timestamp(2) NOT NULL, tz timestamptz NOT NULL, iv interval NOT NULL, dom day, od date DEFAULT '2020-02-29', ots timestamp DEFAULT '2020-02-29 10:00', now timestamptz DEFAULT now(), oiv interval DEFAULT '1 hour');
INSERT INTO r (id, d, t, tt, ts, tz, iv, dom, now) VALUES (1, '2020-01-01', '10:00', '10:00+02', '2020-01-01 10:00:00.12', '2020-01-01 10:00:00.123456+00', '1 day 01:00:00.5', '2020-01-01', NULL);
