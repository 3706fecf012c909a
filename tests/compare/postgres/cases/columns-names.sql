-- Column lists without their schema, of all tables, with a database's name; masks by short names; lists of nothing; odd case.
-- @property column.exclude.list=.*\.secret,nothing,A.V
-- @property column.mask.hash.MD5.with.salt.x=public.b.v
-- @property column.mask.hash.v2.SHA-1.with.salt.a.b=public.b.w
-- @property column.mask.with.0.chars=golden.public.c.v
-- @property column.truncate.to.2.chars=golden.public.c.w,.*\.b\.x
-- @property message.key.columns= public.b:v , w ;public.c:w;public.d :v;public.e|public.f:v;public.g,public.h:v
-- @property datatype.propagate.source.type=.*\.text
-- @property topic.naming.strategy=io.debezium.schema.DefaultTopicNamingStrategy
CREATE SCHEMA a;
CREATE TABLE a.v (id integer PRIMARY KEY, v text, secret text);
CREATE TABLE b (id integer PRIMARY KEY, v text, w text NOT NULL, x text, "Secret" text);
CREATE TABLE g (id integer PRIMARY KEY, v text);
CREATE TABLE h (id integer PRIMARY KEY, v text);
INSERT INTO g VALUES (1, 'v');
INSERT INTO h VALUES (1, 'v');
CREATE TABLE d (id integer PRIMARY KEY, v text);
CREATE TABLE e (id integer PRIMARY KEY, v text);
CREATE TABLE f (id integer PRIMARY KEY, v text);
INSERT INTO d VALUES (1, 'v');
INSERT INTO e VALUES (1, 'v');
INSERT INTO f VALUES (1, 'v');
CREATE TABLE c (id integer PRIMARY KEY, v text, w varchar(1));
INSERT INTO a.v VALUES (1, 'v', 's');
INSERT INTO b VALUES (1, 'v', 'w', 'xyz', 's');
INSERT INTO c VALUES (1, 'v', 'w');
-- @run
INSERT INTO a.v VALUES (2, 'v', 's');
INSERT INTO b VALUES (2, 'v', 'w', 'xyz', 's');
INSERT INTO c VALUES (2, 'v', 'w');
UPDATE b SET w = 'n' WHERE id = 1;
DELETE FROM b WHERE id = 2;
