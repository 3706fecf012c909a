-- Settings of the database and of connections that change how the server prints values.
-- @property database.initial.statements=SET TimeZone='America/New_York';SET search_path='s',public
ALTER DATABASE golden SET timezone = 'Asia/Tokyo';
ALTER DATABASE golden SET datestyle = 'German';
ALTER DATABASE golden SET intervalstyle = 'iso_8601';
ALTER DATABASE golden SET search_path = 's', 'public';
CREATE SCHEMA s;
CREATE TYPE s.mood AS ENUM ('sad', 'ok');
CREATE TABLE t (id integer PRIMARY KEY, r tstzrange, tr tsrange, dr daterange, ts timestamp, tz timestamptz DEFAULT '2024-07-01 12:00:00+00', d date DEFAULT '2024-02-01', ti time, tt timetz, i interval DEFAULT '1 day', by bytea, f float8, m money, mo s.mood DEFAULT 'ok', tza timestamptz[], ra tstzrange[], da date[], ia interval[], x jsonb);
CREATE FUNCTION public.fill(n integer) RETURNS void LANGUAGE sql AS $$ INSERT INTO public.t VALUES (n, '["2024-07-01 12:00:00+00",)', '["2024-07-01 12:00:00",)', '[2024-02-01,2024-03-02)', '2024-02-01 03:04:05.6', '2024-02-01 03:04:05.6+00', '2024-02-01', '03:04:05.6', '03:04:05.6+00', '1 year 2 mons -3 days 04:05:06.7', '\x0001ff', 0.1, 12.5, 'sad', '{2024-02-01 03:04:05.6+00}', '{"[\"2024-07-01 12:00:00+00\",)"}', '{2024-02-01}', '{1 day}', '{"a": 1}') $$;
SELECT public.fill(1);
-- @run
SELECT public.fill(2);
INSERT INTO public.t (id) VALUES (3);
UPDATE public.t SET id = 4 WHERE id = 1;
