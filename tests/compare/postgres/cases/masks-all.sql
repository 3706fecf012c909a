-- Masks of all kinds on types of all kinds.
-- @compare {"requires": ["citext", "xml"]}
-- @property column.mask.hash.SHA-256.with.salt.pepper=public.m.(t|v|c|u|j|e|ct|n|d|b|a|x)
-- @property column.mask.hash.v2.SHA-512.with.salt.pe=public.m.(t2|v2|q|na)
-- @property column.truncate.to.3.chars=public.m.(t3|v3|s3|c3|j3|e3)
-- @property column.truncate.to.0.chars=public.m.t0
-- @property column.mask.with.2.chars=public.m.(t4|v4|c4|i4|b4|e4)
-- @property column.propagate.source.type=public.m.(t5|v5)
CREATE EXTENSION citext;
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE DOMAIN dom AS varchar(6);
CREATE TABLE m (id serial PRIMARY KEY, t text, v varchar(10), c char(5), u uuid, j json, e mood, ct citext, n numeric(5,2), d date, b bytea, a text[], x xml,
  t2 text NOT NULL DEFAULT 'some', v2 varchar(100) DEFAULT 'x', q "char", na name,
  t3 text DEFAULT 'default', v3 varchar(2) DEFAULT 'ab', s3 varchar(4), c3 char(7), j3 jsonb, e3 mood DEFAULT 'happy', t0 text NOT NULL DEFAULT 'x',
  t4 text, v4 varchar(1), c4 char(3) NOT NULL DEFAULT 'abc', i4 integer, b4 bytea, e4 mood, t5 text, v5 dom, v6 dom);
ALTER TABLE m REPLICA IDENTITY FULL;
INSERT INTO m (t, v, c, u, j, e, ct, n, d, b, a, v2, q, na, t3, v3, s3, c3, j3, e3, t4, v4, i4, b4, e4, t5, v5, v6) VALUES
 ('ünï', 'abc', 'ab', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a":1}', 'sad', 'Ci', 1.5, '2024-01-01', '\x01', '{a,b}', 'zz', 'q', 'nm', 'abcdef', 'xy', 'abcd', 'abcdefg', '{"a":1}', 'sad', 'x', 'y', 1, '\x02', 'sad', 't', 'v', 'w'),
 (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
 ('', '', '', '00000000-0000-0000-0000-000000000000', '1', 'happy', '', 0, '1970-01-01', '', '{}', '', '', '', '', '', '', '', '1', 'happy', '', '', 0, '', 'happy', '', '', '');
-- @run
INSERT INTO m (t, v, c, u, j, e, ct, n, d, b, a, v2, q, na, t3, v3, s3, c3, j3, e3, t4, v4, i4, b4, e4, t5, v5, v6) VALUES
 ('ünï', 'abc', 'ab', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a":1}', 'sad', 'Ci', 1.5, '2024-01-01', '\x01', '{a,b}', 'zz', 'q', 'nm', 'abcdef', 'xy', 'abcd', 'abcdefg', '{"a":1}', 'sad', 'x', 'y', 1, '\x02', 'sad', 't', 'v', 'w');
UPDATE m SET t = NULL WHERE id = 1;
DELETE FROM m;
