-- Deletes and key changes of required columns of many types: what the old row shows.
-- @property time.precision.mode=isostring
-- @property decimal.handling.mode=double
-- @property interval.handling.mode=string
-- @property binary.handling.mode=hex
-- @property snapshot.mode=no_data
-- @property include.unknown.datatypes=true

CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN money2 AS numeric(8,2);
CREATE TABLE a (pk serial PRIMARY KEY, s smallint NOT NULL, i integer NOT NULL, b bigint NOT NULL, r real NOT NULL, d float8 NOT NULL,
  n numeric NOT NULL, n1 numeric(6,2) NOT NULL, m money NOT NULL, bo boolean NOT NULL, t text NOT NULL, vc varchar(5) NOT NULL,
  c char(3) NOT NULL, by bytea NOT NULL, b1 bit NOT NULL, b8 bit(8) NOT NULL, vb varbit(4) NOT NULL, u uuid NOT NULL, j json NOT NULL,
  jb jsonb NOT NULL, inet inet NOT NULL, cidr cidr NOT NULL, mac macaddr NOT NULL, p point NOT NULL, ir int4range NOT NULL,
  e mood NOT NULL, dm money2 NOT NULL, o oid NOT NULL, tsv tsvector NOT NULL, lsn pg_lsn NOT NULL, bx box NOT NULL, x xid NOT NULL);
CREATE TABLE t (pk serial PRIMARY KEY, da date NOT NULL, ti time NOT NULL, t3 time(3) NOT NULL, tz timetz NOT NULL, iv interval NOT NULL);
CREATE TABLE arr (pk serial PRIMARY KEY, ia integer[] NOT NULL, ta text[] NOT NULL, ba bigint[] NOT NULL, va varchar(3)[] NOT NULL,
  bo boolean[] NOT NULL, da date[] NOT NULL, na numeric(4,1)[] NOT NULL, u uuid[] NOT NULL, fa float8[] NOT NULL, ea mood[] NOT NULL);
-- @run
INSERT INTO a VALUES (1, 1, 1, 1, 1, 1, 1, 1, 1, true, 'x', 'x', 'x', '\x01', '1', '00000001', '1', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
  '1', '1', '::1', '::1', '08:00:2b:01:02:03', '(1,2)', '[1,2)', 'ok', 1, 1, 'a', '0/1', '(1,2),(0,0)', '7');
UPDATE a SET pk = 2;
UPDATE a SET s = 2;
DELETE FROM a;
INSERT INTO t VALUES (1, '2024-01-01', '01:02:03', '01:02:03.456', '01:02:03+01', '1 day');
UPDATE t SET pk = 2;
DELETE FROM t;
INSERT INTO arr VALUES (1, '{1}', '{a}', '{1}', '{a}', '{t}', '{2024-01-01}', '{1.5}', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', '{1.5}', '{ok}');
UPDATE arr SET pk = 2;
DELETE FROM arr;
