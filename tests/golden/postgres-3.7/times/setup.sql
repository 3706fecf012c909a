CREATE TABLE times (id serial PRIMARY KEY, ts timestamp, ts0 timestamp(0), ts3 timestamp(3), tz timestamptz, tz3 timestamptz(3), d date, t time, t3 time(3), t0 time(0), tt timetz, tt3 timetz(3), tt0 timetz(0), tta timetz[], ta time[], tsa timestamp[], tza timestamptz[], da date[], iv interval);
ALTER TABLE times REPLICA IDENTITY FULL;
CREATE FUNCTION fill() RETURNS void LANGUAGE sql AS $$
INSERT INTO times (ts, ts0, ts3, tz, tz3, d, t, t3, t0, tt, tt3, tt0, tta, ta, tsa, tza, da, iv) VALUES
  ('2016-11-04T13:51:30.123456', '2016-11-04T13:51:30', '2016-11-04T13:51:30.124', '2016-11-04T13:51:30.123456+02:00', '2016-11-04T13:51:30.123+07:00', '2016-11-04', '13:51:30.123456', '13:51:30.123', '13:51:30', '13:51:30.123789+02:00', '13:51:30.123-05:30', '13:51:30+00', '{13:51:30+02,00:00:00+00}', '{13:51:30,00:00}', '{2016-11-04 13:51:30.5}', '{2016-11-04 13:51:30+02}', '{2016-11-04,1999-12-31}', '1 year 2 months 3 days 4 hours 5 minutes 6.78 seconds'),
  ('infinity', '-infinity', 'infinity', 'infinity', '-infinity', 'infinity', '00:00', '23:59:59.999', '12:00', '00:00:00+15:59', '23:59:59.999-15:59', '12:00:00-08', NULL, NULL, NULL, NULL, NULL, '-1 year -2 months -3 days -4 hours -5 minutes -6.78 seconds'),
  ('0044-03-15 12:00:00.25 BC', '0001-12-31 BC', '10000-01-01', '0044-03-15 12:00:00+00 BC', '10000-01-01 00:00:00+00', '0044-03-15 BC', NULL, NULL, NULL, NULL, NULL, NULL, '{}', '{}', '{}', '{}', '{}', '0'),
  ('-infinity', NULL, NULL, '-infinity', NULL, '-infinity', NULL, NULL, NULL, NULL, NULL, NULL, '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '100000 hours 0.000001 seconds');
$$;
SELECT fill();
