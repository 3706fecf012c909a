-- Types at their bounds: far and infinite times, 24:00, NaN and infinity, bit strings, money, networks, ranges, serials, quoted columns; in log and snapshot.
-- @property column.propagate.source.type=.*
-- @property include.unknown.datatypes=true
CREATE TABLE nums (id serial PRIMARY KEY, s smallint, i integer, b bigint, r real, f double precision, ss smallserial, bs bigserial, o oid, bo boolean, m money, q numeric);
CREATE TABLE decs (id serial PRIMARY KEY, a numeric(3,2), b numeric(4), c numeric, d numeric(3,2) NOT NULL, e numeric(12,0) NOT NULL DEFAULT 0.0, g numeric(4,0) NOT NULL DEFAULT 2.5, h numeric(4,1) DEFAULT 0.25, i numeric(3,0) DEFAULT 3.5, f decimal);
CREATE TABLE bits (id serial PRIMARY KEY, a bit, b bit(2), c bit(7), d varbit(1), e varbit(2), f varbit(24), g varbit(64), h varbit, i bit(1)[], j bytea, k bytea[], l bit(1) NOT NULL DEFAULT '1');
CREATE TABLE times (id serial PRIMARY KEY, ts timestamp, ts0 timestamp(0), ts3 timestamp(3), ts6 timestamp(6), tz timestamptz, tz0 timestamptz(0), tz3 timestamptz(3), d date, t time, t3 time(3), t0 time(0), tt timetz, tt3 timetz(3), tt0 timetz(0), tta timetz[], ta time[], tsa timestamp[], tza timestamptz[], da date[], iv interval);
CREATE TABLE nets (id serial PRIMARY KEY, a inet, b cidr, c macaddr, d macaddr8, e inet[], f cidr[], g macaddr[], h uuid, i json, j jsonb, k json[], l jsonb[], m uuid[], n oid[]);
CREATE TABLE ranges (id serial PRIMARY KEY, a tsrange, b tstzrange, c daterange, d int4range, e numrange, f int8range, g tsrange[], h daterange[], i int4range[], j numrange[]);
CREATE TABLE texts (id serial PRIMARY KEY, a varchar(2), b character varying(2), c char(4), d char, e text, f char(10)[], g varchar(10)[], h text[], i tsvector, j tsquery, k "char", l name, m xid, "a ""b"" c" integer);
ALTER TABLE times REPLICA IDENTITY FULL;
ALTER TABLE decs REPLICA IDENTITY FULL;
ALTER TABLE nums REPLICA IDENTITY FULL;
CREATE FUNCTION fill() RETURNS void LANGUAGE sql AS $$
INSERT INTO nums (s, i, b, r, f, o, bo, m, q) VALUES (1, 123456, 1234567890123, 3.3, 4.44, 4000000000, true, '$1234.11', 12.50), (-32768, -2147483648, '-9223372036854775808', 'NaN', 'NaN', 0, false, '($1234.11)', 'NaN'),
  (32767, 2147483647, 9223372036854775807, 'Infinity', '-Infinity', 1, NULL, '-92233720368547758.08', 'Infinity'), (NULL, NULL, NULL, '-Infinity', 1e300, NULL, NULL, '92233720368547758.07', '-Infinity'), (0, 0, 0, 1e-40, 5e-324, 0, false, 0, 0);
INSERT INTO decs (a, b, c, d, e, f) VALUES (1.1, 10.11, 10.1111, 3.30, 2.25, 22.2222), (1, 10, 10, 1, 3, 100), ('NaN', 'NaN', 'NaN', 1, 5.5, 1e30), (NULL, NULL, NULL, 0, 0, -0.001);
INSERT INTO decs (d) VALUES (1);
INSERT INTO bits (a, b, c, d, e, f, g, h, i, j, k) VALUES ('0', '11', B'1000000', '1', '00', B'000000110000001000000001', B'1000000000000000000000000000000000000000000000000000000000000000', '101', '{1,0}', '\x010203', ARRAY['\x000102'::bytea, '\x030405']),
  ('1', '01', B'0000001', '', '', '', B'0000000000000000000000000000000000000000000000000000000000000001', '111011010001000110000001000000001', NULL, '', '{}');
INSERT INTO times (ts, ts0, ts3, ts6, tz, tz0, tz3, d, t, t3, t0, tt, tt3, tt0, tta, ta, tsa, tza, da, iv) VALUES
  ('2016-11-04T13:51:30.123456', '2016-11-04T13:51:30.5', '2016-11-04T13:51:30.123456', '2016-11-04T13:51:30.123456', '2016-11-04T13:51:30.123456+02:00', '2016-11-04T13:51:30.5+02:00', '2016-11-04T13:51:30.123456+02:00', '2016-11-04', '13:51:30', '13:51:30.123', '13:51:30.7', '13:51:30.123789+02:00', '13:51:30.123+02:00', '13:51:30.5+02', '{00:01:02+00,23:59:59.999999-05}', '{00:01:02,24:00:00}', '{2016-11-04 13:51:30.123456}', '{2016-11-04 13:51:30.123456+03}', '{2016-11-04,1582-10-10}', 'P1Y2M3DT4H5M6.78S'),
  ('1936-10-25T22:10:12.608', '1582-10-10 00:00:00', '1500-02-28 23:59:59.999', '0001-01-01', '1936-10-25T22:10:12.608Z', '1582-10-10 00:00:00Z', '1500-02-28 23:59:59.999Z', '1582-10-05', '24:00:00', '24:00:00', '24:00:00', '24:00:00+00', '24:00:00+00', '24:00:00+00', '{24:00:00+00}', '{}', '{}', '{}', '{0001-01-01}', '-1 year -2 mons +3 days -04:05:06'),
  ('1969-12-31 23:59:59.999999', '1969-12-31 23:59:59', '1969-12-31 23:59:59.999', '1969-12-31 23:59:59.9', '1969-12-31 23:59:59.999999Z', '1969-12-31 23:59:59Z', '1969-12-31 23:59:59.999Z', '1969-12-31', '00:00:00.000001', '00:00:00.001', '00:00:00', '00:00:00.000001+14', '00:00:00.001-12', '23:59:59-12', NULL, NULL, NULL, NULL, NULL, '60 days');
INSERT INTO nets (a, b, c, d, e, f, g, h, i, j, k, l, m, n) VALUES ('192.168.2.0/12', '192.168.100.128/25', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05', '{192.168.2.0/12,192.168.1.1,::1/64}', '{192.168.0.0/25,2001:db8::/32}', '{08:00:2b:01:02:03,08-00-2b-01-02-03}', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{"bar":  "baz"}', '{"bar":  "baz", "a": 1.50}', ARRAY['{"bar": "baz"}']::json[], ARRAY['{"bar": "baz"}', '[1, null]']::jsonb[], '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', '{3,4000000000}');
INSERT INTO ranges (a, b, c, d, e, f, g, h, i, j) VALUES ('[2019-03-31 15:30:00, infinity)', '[2017-06-05 11:29:12.549426+00,)', '[2019-03-31, infinity)', '[1000,6000)', '[5.3,6.3)', '[1000000,6000000)', '{"[2019-03-31 15:30:00, infinity)"}', '{"[2019-03-31, infinity)","[2019-03-31, 2019-04-30)"}', '{"[1,6)","[1,4)"}', '{"[5.3,6.3)","[10.0,20.0)"}'), ('empty', '(,)', 'empty', '(,5]', '[1,1]', 'empty', '{}', NULL, '{empty}', '{NULL}');
INSERT INTO texts (a, b, c, d, e, f, g, h, i, j, k, l, m, "a ""b"" c") VALUES ('žš', 'bb', 'cdef', 'a', 'some text', '{cone,ctwo,NULL}', '{v1,"v,2"}', '{"one \"q\"",NULL,""}', to_tsvector('english', 'a test of the fat cats'), 'fat <-> cat', 'c', 'n', '7', 1), ('', ' ', ' ', ' ', '', '{}', '{}', '{}', '', '', '', '', '0', NULL);
$$;
SELECT fill();
-- @run
SELECT fill();
DELETE FROM times;
DELETE FROM decs;
DELETE FROM nums;
