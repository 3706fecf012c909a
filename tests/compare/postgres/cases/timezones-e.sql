-- Timezones: unwrapped.
-- @property transforms.z.type=io.debezium.transforms.TimezoneConverter
-- @property transforms.z.converted.timezone=Pacific/Easter
-- @property transforms=u,z
-- @property transforms.u.type=io.debezium.transforms.ExtractNewRecordState
-- @property time.precision.mode=adaptive_time_microseconds
-- @property transforms.z.include.list=a:ts
-- @compare {"ignore_topics": ["message$"]}
CREATE TABLE a (id integer PRIMARY KEY, ts timestamp, ts0 timestamp(0), ts3 timestamp(3), tz timestamptz, tz0 timestamptz(0), tz3 timestamptz(3), d date, t time, t3 time(3), tt timetz, tt3 timetz(3), v text, tsa timestamp[], tza timestamptz[]);
CREATE TABLE b (id timestamptz PRIMARY KEY, ts timestamp NOT NULL DEFAULT '2024-01-01 01:02:03');
ALTER TABLE a REPLICA IDENTITY FULL;
CREATE FUNCTION fill(n integer) RETURNS void LANGUAGE sql AS $$ INSERT INTO a VALUES (n, '2024-07-01 12:34:56.789012', '2024-07-01 12:34:56', '2024-01-01 12:34:56.789', '2024-07-01 12:34:56.789012+00', '2024-07-01 12:34:56+00', '1950-01-01 12:34:56.789+00', '2024-07-01', '12:34:56.789012', '23:34:56.789', '12:34:56.789012+02', '00:34:56.789-03', 'v', '{2024-07-01 12:34:56.789012}', '{2024-07-01 12:34:56.789012+00}');
INSERT INTO a (id) VALUES (n + 1); INSERT INTO a (id, ts, tz) VALUES (n + 2, '1900-01-01', '1900-01-01 00:00:00+00'), (n + 3, '2024-03-31 01:30:00', '2024-03-31 00:30:00+00'); $$;
SELECT fill(1); INSERT INTO b VALUES ('2024-01-01 00:00:00+00');
-- @run
SELECT fill(11);
UPDATE a SET v = 'w' WHERE id = 1;
DELETE FROM a WHERE id = 1;
DELETE FROM b;
