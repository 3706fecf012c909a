-- Lists with blanks, expressions without a schema, odd table names, views; keys by expressions; replica identities that are set.
-- @property schema.include.list= s1 , test_, odd
-- @property column.exclude.list= .+bb , odd.*\.hidden
-- @property column.mask.with.5.chars=.+cc
-- @property column.mask.hash.SHA-256.with.salt.CzQMA0cB5K=s1.a.dd, s1.h.dd
-- @property column.truncate.to.3.chars= s1.a.ee
-- @property message.key.columns=(.*)1.k:pk,aa
-- @property replica.identity.autoset.values=s1.a:FULL,test_.*:FULL,s1.h:INDEX h_pkey
-- @property publication.autocreate.mode=filtered
CREATE SCHEMA s1;
CREATE SCHEMA s2;
CREATE SCHEMA test_;
CREATE SCHEMA test1;
CREATE SCHEMA odd;
CREATE TABLE s1.a (pk serial PRIMARY KEY, aa integer, bb integer, cc char(12), dd varchar(20), ee varchar(20));
CREATE TABLE s1.h (pk serial PRIMARY KEY, aa integer, dd varchar(255));
CREATE TABLE s1.k (pk serial, aa integer, PRIMARY KEY (pk));
CREATE TABLE s2.a (pk serial PRIMARY KEY, aa integer);
CREATE TABLE test_.tab (pk serial PRIMARY KEY, aa integer);
CREATE TABLE test1.tab (pk serial PRIMARY KEY, aa integer);
CREATE TABLE odd."dbz_some|test@data" (pk serial PRIMARY KEY, aa integer, hidden text);
CREATE TABLE odd."back\slash" (pk serial PRIMARY KEY, aa integer, hidden text);
CREATE VIEW s1.v AS SELECT * FROM s1.a;
CREATE MATERIALIZED VIEW s1.mv AS SELECT * FROM s1.a;
INSERT INTO s1.a (aa, bb, cc, dd, ee) VALUES (1, 2, 'secret', 'test', 'hello'), (2, NULL, NULL, NULL, NULL);
INSERT INTO s1.h (aa, dd) VALUES (1, 'test');
INSERT INTO s1.k (aa) VALUES (5);
INSERT INTO s2.a (aa) VALUES (5);
INSERT INTO test_.tab (aa) VALUES (1);
INSERT INTO test1.tab (aa) VALUES (1);
INSERT INTO odd."dbz_some|test@data" (aa, hidden) VALUES (1, 'h');
INSERT INTO odd."back\slash" (aa, hidden) VALUES (1, 'h');
-- @run
-- @wait
INSERT INTO s1.a (aa, bb, cc, dd, ee) VALUES (3, 3, 'secret', 'hello', 'abcdef');
UPDATE s1.a SET aa = 4, dd = 'hello', ee = 'xyzzy';
UPDATE s1.h SET aa = 2, dd = 'hello';
UPDATE s1.h SET pk = 10;
DELETE FROM s1.h;
UPDATE s1.k SET aa = 6;
DELETE FROM s1.k;
INSERT INTO s2.a (aa) VALUES (6);
INSERT INTO test_.tab (aa) VALUES (3);
INSERT INTO test1.tab (aa) VALUES (4);
UPDATE odd."dbz_some|test@data" SET aa = 2, hidden = 'i';
UPDATE odd."back\slash" SET hidden = 'i';
DELETE FROM s1.a;
