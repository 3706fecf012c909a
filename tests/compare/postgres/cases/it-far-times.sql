-- Times that are far away or infinite, also in deletes of whole rows.
CREATE TABLE far (id serial PRIMARY KEY, ts timestamp, ts3 timestamp(3), tz timestamptz, d date);
ALTER TABLE far REPLICA IDENTITY FULL;
CREATE FUNCTION fill() RETURNS void LANGUAGE sql AS $$
INSERT INTO far (ts, ts3, tz, d) VALUES ('21016-11-04T13:51:30.123456', '21016-11-04T13:51:30.124', '21016-11-04T13:51:30.123456+07:00', '21016-11-04'), ('294247-01-01T23:59:59.999999', '4713-12-31T23:59:59.999999 BC', '294247-01-01T23:59:59.999999+00:00', '4713-01-01 BC'),
  ('4713-12-31T23:59:59.999999 BC', '294246-01-01', '4714-12-31T23:59:59.999999Z BC', '5000000-01-01'), ('infinity', '-infinity', 'infinity', 'infinity'), ('-infinity', 'infinity', '-infinity', '-infinity'), ('0044-03-15 12:00:00 BC', '0001-12-31 BC', '0001-01-01 00:00:00Z BC', '0001-12-31 BC'), ('9999-12-31 23:59:59.999999', '10000-01-01', '10000-01-01 00:00:00+00', '10000-01-01');
$$;
SELECT fill();
-- @run
SELECT fill();
UPDATE far SET id = id + 100;
DELETE FROM far;
