CREATE EXTENSION vector;
CREATE TYPE mood AS ENUM ('sad', 'it''s, ok');
CREATE DOMAIN amount AS numeric(6,2);
CREATE DOMAIN amounts AS amount[];
CREATE TABLE numbers (
    id int PRIMARY KEY,
    c0 smallint,
    c1 integer,
    c2 bigint,
    c3 real,
    c4 double precision,
    c5 numeric,
    c6 numeric(10,2),
    c7 numeric(5),
    c8 numeric(38,10),
    c9 numeric(3,3),
    c10 decimal(18,4),
    c11 money,
    c12 boolean,
    c13 oid
);
INSERT INTO numbers VALUES (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '0', true, 0);
INSERT INTO numbers VALUES (1, 1, 1, '-9223372036854775808', 1.5, 1.5, 1.10, 1.1, 1, 1234567890123456789012345678.0123456789, 0.999, 1.1, '12.34', false, 1);
INSERT INTO numbers VALUES (2, '-32768', -1, 9223372036854775807, '-0.25', '-2.75', '-123.4500', '-99999999.99', '-99999', '-0.0000000001', '-0.001', '-1000.0001', '-1234567.89', NULL, '4294967295');
INSERT INTO numbers VALUES (3, 32767, 42, 5, 1024, 1e300, 100, 12345.67, 12345, NULL, NULL, NULL, '92233720368547758.07', NULL, NULL);
INSERT INTO numbers VALUES (4, 7, 2147483647, 12345678901, 'NaN', '1e-300', 1e20, 3, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO numbers VALUES (5, NULL, '-2147483648', NULL, 'Infinity', 'NaN', 0.000001, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO numbers VALUES (6, NULL, NULL, NULL, '-Infinity', 'Infinity', 12345678901234567890.123456789, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO numbers VALUES (7, NULL, NULL, NULL, 100000000, 123456789.123, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO numbers VALUES (8, NULL, NULL, NULL, NULL, '-0', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO numbers VALUES (9, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE texts (
    id int PRIMARY KEY,
    c0 text,
    c1 varchar,
    c2 varchar(20),
    c3 character varying(255),
    c4 char,
    c5 char(5),
    c6 bpchar,
    c7 "char",
    c8 name,
    c9 mood
);
INSERT INTO texts VALUES (0, '', '', '', '', 'x', 'ab', 'ab', 'x', 'n', 'sad');
INSERT INTO texts VALUES (1, 'a', 'abc', 'abc', 'some words', '', 'abcde', '  ', '', NULL, 'it''s, ok');
INSERT INTO texts VALUES (2, 'it''s', 'ß', 'twenty characters...', 'NULL', 'é', '', 'trailing  ', NULL, NULL, NULL);
INSERT INTO texts VALUES (3, 'say "hi"', 'it''s', 'ü', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO texts VALUES (4, 'ünï🎉', 'a,b', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO texts VALUES (5, 'tab	here', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO texts VALUES (6, 'line
break', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO texts VALUES (7, 'back\slash', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO texts VALUES (8, 'NULL', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO texts VALUES (9, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO texts VALUES (10, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE binaries (
    id int PRIMARY KEY,
    c0 bytea,
    c1 bit(1),
    c2 bit,
    c3 bit(8),
    c4 bit(12),
    c5 varbit(10),
    c6 varbit
);
INSERT INTO binaries VALUES (0, '\x', B'0', B'0', B'00000000', B'000000000000', B'', B'');
INSERT INTO binaries VALUES (1, '\x00ff10', B'1', B'1', B'10000001', B'100000000001', B'1', B'1');
INSERT INTO binaries VALUES (2, '\xdeadbeef', NULL, NULL, B'00001111', NULL, B'1010101010', B'10101010101010101');
INSERT INTO binaries VALUES (3, '\x3b', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO binaries VALUES (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE times (
    id int PRIMARY KEY,
    c0 date,
    c1 time,
    c2 time(0),
    c3 time(3),
    c4 timetz,
    c5 timetz(3),
    c6 timestamp,
    c7 timestamp(0),
    c8 timestamp(3),
    c9 timestamp(6),
    c10 timestamptz,
    c11 timestamptz(0),
    c12 timestamptz(3),
    c13 interval,
    c14 interval(3),
    c15 interval day to second
);
INSERT INTO times VALUES (0, '1970-01-01', '00:00:00', '00:00:00', '00:00:00', '00:00:00+00', '00:00:00+00', '1970-01-01 00:00:00', '1970-01-01 00:00:00', '1970-01-01 00:00:00.001', '1970-01-01 00:00:00.000001', '1970-01-01 00:00:00+00', '1970-01-01 00:00:00+00', '2024-06-01 01:02:03.456+00', '0', '1.234 seconds', '4 days 01:00:00');
INSERT INTO times VALUES (1, '2024-02-29', '23:59:59.999999', '23:59:59', '23:59:59.999', '12:34:56.789012+02', '12:34:56.789+05:45', '2024-02-29 12:34:56.789012', '1969-12-31 23:59:59', '1969-12-31 23:59:59.999', '1582-10-04 00:00:00', '2024-02-29 12:34:56.789012+02', '2024-06-01 01:02:03-08', '0001-01-01 00:00:00+00', '1 day 02:03:04.5', '3 mons', NULL);
INSERT INTO times VALUES (2, '0001-01-01', '12:34:56.789', NULL, NULL, '23:59:59-11:30', NULL, '0001-01-01 00:00:00', '2024-06-01 01:02:03', NULL, NULL, '1969-12-31 23:59:59.5+00', NULL, NULL, '-1 year 2 months', NULL, NULL);
INSERT INTO times VALUES (3, '9999-12-31', '01:02:03', NULL, NULL, NULL, NULL, '9999-12-31 23:59:59', NULL, NULL, NULL, NULL, NULL, NULL, '00:00:00.000001', NULL, NULL);
INSERT INTO times VALUES (4, '1969-12-31', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '100 years', NULL, NULL);
INSERT INTO times VALUES (5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE others (
    id int PRIMARY KEY,
    c0 uuid,
    c1 json,
    c2 jsonb,
    c3 inet,
    c4 cidr,
    c5 macaddr,
    c6 macaddr8,
    c7 point,
    c8 int4range,
    c9 int8range,
    c10 numrange,
    c11 daterange,
    c12 tsrange,
    c13 tstzrange,
    c14 tsvector,
    c15 tsquery,
    c16 int4multirange,
    c17 box,
    c18 circle,
    c19 line,
    c20 path,
    c21 pg_lsn,
    c22 xid,
    c23 vector(3),
    c24 halfvec(2),
    c25 sparsevec(5),
    c26 amount,
    c27 amounts,
    c28 oidvector,
    c29 int2vector
);
INSERT INTO others VALUES (0, '00000000-0000-0000-0000-000000000000', '{}', '{}', '127.0.0.1', '10.0.0.0/8', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05', '(0,0)', '[1,5)', '[1,5)', '[1.5,2.50)', '[2024-01-01,2024-02-01)', '["2024-01-01 00:00:00","2024-01-02 12:00:00.5")', '["2024-01-01 00:00:00+00",)', '''a'' ''b'':2A', 'a & b', '{[1,5)}', '(1,2),(0,0)', '<(1,2),3>', '{1,2,3}', '[(0,0),(1,1)]', '0/16B3748', '7', '[1,2.5,-3]', '[1,2]', '{1:1,3:2}/5', 17.50, '{1.5,NULL,3}', '1 2 3', '1 2');
INSERT INTO others VALUES (1, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a": 1, "b":[1,2]}', '{"b": 1, "a": [1, 2.50]}', '10.0.0.0/8', '2001:db8::/32', NULL, NULL, '(1.5,-2)', 'empty', '[10,)', 'empty', '(,2024-01-01)', NULL, NULL, 'the quick fox', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO others VALUES (2, NULL, 'null', 'null', '::1', NULL, NULL, NULL, NULL, '(,)', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO others VALUES (3, NULL, '"text"', '"text"', '2001:db8::/32', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO others VALUES (4, NULL, '{"u": "ü"}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO others VALUES (5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE arrays (
    id int PRIMARY KEY,
    c0 bool[],
    c1 int2[],
    c2 int[],
    c3 int8[],
    c4 real[],
    c5 float8[],
    c6 numeric[],
    c7 numeric(10,2)[],
    c8 text[],
    c9 varchar(20)[],
    c10 char(3)[],
    c11 date[],
    c12 timestamp[],
    c13 timestamptz[],
    c14 time[],
    c15 timetz[],
    c16 uuid[],
    c17 json[],
    c18 jsonb[],
    c19 inet[],
    c20 mood[],
    c21 bytea[],
    c22 money[],
    c23 interval[],
    c24 bit(4)[],
    c25 varbit[],
    c26 point[],
    c27 int4range[],
    c28 name[],
    c29 oid[]
);
INSERT INTO arrays VALUES (0, '{t,f,NULL}', '{1,-2}', '{1,NULL,3}', '{9223372036854775807}', '{1.5,NaN,-0}', '{0.1,Infinity,-0}', '{1.10,1e30,NULL}', '{1.1,2}', ARRAY['a,b', NULL, 'NULL', '"', E'\\', '', ' x ', '{}', E'\n'], '{a,"b c"}', '{a,abc}', '{2024-02-29,0001-01-01}', '{2024-02-29 12:34:56.789012}', '{2024-02-29 12:34:56.789012+02}', '{12:34:56.789012,24:00}', '{12:34:56+02}', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', ARRAY['{"a": [1,2]}'::json, 'null'], ARRAY['{"a": [1,2]}'::jsonb], '{10.0.0.1/8}', ARRAY['sad','it''s, ok']::mood[], ARRAY['\x00ff'::bytea,'\x'], '{1.5,-2}', '{1 day,-2 mons}', '{1010,0001}', '{1,10101}', '{"(1,2)"}', '{"[1,5)",empty}', '{n}', '{4294967295}');
INSERT INTO arrays VALUES (1, '{}', NULL, '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO arrays VALUES (2, NULL, NULL, '[5:6]={7,8}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO arrays VALUES (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
