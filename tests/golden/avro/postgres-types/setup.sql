CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy day');
CREATE DOMAIN price AS numeric(8, 2) DEFAULT 1.50 CHECK (VALUE >= 0);
CREATE TABLE numbers (
  id int PRIMARY KEY, s smallint NOT NULL DEFAULT 7, i int DEFAULT -1, b bigint NOT NULL DEFAULT 9223372036854775807,
  r real DEFAULT 1.1, rn real NOT NULL DEFAULT 2.5, d double precision DEFAULT 0.1, n numeric, nn numeric NOT NULL DEFAULT 0,
  n52 numeric(5, 2) DEFAULT 3.14, n50 numeric(5, 0) NOT NULL DEFAULT 12, big numeric(38, 10), m money, p price, bo boolean NOT NULL DEFAULT true,
  bn boolean, o oid);
CREATE TABLE times (
  id int PRIMARY KEY, d date DEFAULT '2020-02-29', dn date NOT NULL DEFAULT '1970-01-02', t time, t3 time(3), tz timetz, s timestamp DEFAULT '2020-01-01 12:34:56.789',
  s0 timestamp(0), s3 timestamp(3), sz timestamptz, i interval DEFAULT '1 day');
CREATE TABLE texts (
  id int PRIMARY KEY, t text DEFAULT 'it''s "x"', v varchar(10) NOT NULL DEFAULT '', c char(3) DEFAULT 'a', b bytea DEFAULT '\x00ff41',
  bn bytea NOT NULL DEFAULT '\x', u uuid, j json, jb jsonb DEFAULT '{"a": 1}', e mood DEFAULT 'ok', en mood NOT NULL DEFAULT 'happy day', b1 bit(1), b5 bit(5) DEFAULT B'10101',
  vb varbit(10), ip inet, ci cidr, mac macaddr, p point, ts tsvector, r int4range, tr tstzrange);
CREATE TABLE lists (
  id int PRIMARY KEY, i int[] DEFAULT '{1,2}', t text[] NOT NULL DEFAULT '{}', n numeric(5,2)[], b boolean[], d date[], s timestamp[], e mood[], u uuid[], by bytea[], dd double precision[], j jsonb[]);
INSERT INTO numbers (id) VALUES (1);
INSERT INTO times (id) VALUES (1);
INSERT INTO texts (id) VALUES (1);
INSERT INTO lists (id) VALUES (1);
