CREATE TABLE arrays (id serial PRIMARY KEY, d date, da date[], ta time[], ta3 time(3)[], tta timetz[], tsa timestamp[], tsa3 timestamp(3)[], tza timestamptz[]);
CREATE FUNCTION fill() RETURNS void LANGUAGE sql AS $$
INSERT INTO arrays (d, da, ta, ta3, tta, tsa, tsa3, tza) VALUES
  ('1582-10-10', '{2016-11-04,NULL,1999-12-31,10000-01-01,0001-01-01}', '{13:51:30.123456,NULL,00:00}', '{13:51:30.123}', '{13:51:30.123456+02,NULL,13:51:30-05:30}', '{2016-11-04 13:51:30.123456,NULL}', '{2016-11-04 13:51:30.123}', '{2016-11-04 13:51:30.123456+02,NULL}'),
  ('1500-03-01', '{0044-03-15 BC,0001-12-31 BC}', NULL, NULL, NULL, '{0044-03-15 12:00:00.25 BC}', NULL, '{0044-03-15 12:00:00+00 BC}'),
  ('0001-12-31 BC', '{1582-10-10,1500-03-01}', NULL, NULL, NULL, '{1582-10-10 10:00,1500-03-01 10:00}', NULL, '{1582-10-10 10:00+00,1500-03-01 10:00+00}'),
  ('4713-01-01 BC', NULL, '{24:00}', NULL, '{24:00+00}', NULL, NULL, NULL),
  (NULL, '{infinity,-infinity}', NULL, NULL, NULL, NULL, NULL, NULL),
  (NULL, NULL, NULL, NULL, NULL, '{infinity,-infinity}', NULL, NULL),
  (NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{infinity,-infinity}'),
  (NULL, NULL, NULL, NULL, NULL, NULL, '{10000-01-01}', '{10000-01-01 00:00:00+00}');
$$;
SELECT fill();
