-- Extensions: hstore, citext, ltree, isn, cube; XML; as columns, arrays, defaults, keys, required, large.
-- @compare {"requires": ["hstore", "citext", "ltree", "isn", "cube", "xml"]}
-- @property hstore.handling.mode=map
-- @property unavailable.value.placeholder=gone
-- @property column.propagate.source.type=.*
CREATE EXTENSION hstore;
CREATE EXTENSION citext;
CREATE EXTENSION ltree;
CREATE EXTENSION isn;
CREATE EXTENSION cube;
CREATE FUNCTION big(n integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT string_agg(md5(i::text), '') FROM generate_series(n, n + 200) i$$;
CREATE TABLE t (id citext PRIMARY KEY, h hstore, hn hstore NOT NULL DEFAULT 'a=>1', ha hstore[], c citext DEFAULT 'Aa', ca citext[], l ltree DEFAULT 'a.b', ln ltree NOT NULL DEFAULT 'x', la ltree[], lq lquery, i isbn, i13 isbn13[], cu cube, x xml DEFAULT '<d/>', xn xml NOT NULL DEFAULT '<n/>');
CREATE TABLE big (id integer PRIMARY KEY, small integer, h hstore, hn hstore NOT NULL, c citext, x xml, l ltree);
ALTER TABLE big ALTER h SET STORAGE EXTERNAL, ALTER hn SET STORAGE EXTERNAL, ALTER c SET STORAGE EXTERNAL, ALTER x SET STORAGE EXTERNAL;
INSERT INTO t VALUES ('Key', '"k 1"=>"v\"1", b=>NULL, "ü"=>"", "=>"=>","', DEFAULT, ARRAY['a=>1'::hstore, 'b=>2'], 'Bb', '{A,b}', 'top.sub.leaf', DEFAULT, '{a.b,c}', 'a.*', '0-306-40615-2', '{978-0-306-40615-7}', '(1,2),(3,4)', '<a b="1">x</a>', '<b/>');
INSERT INTO t (id) VALUES ('none');
INSERT INTO t VALUES ('null', NULL, '', NULL, NULL, NULL, NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);
INSERT INTO big VALUES (1, 1, hstore('k', big(1)), hstore('k', big(2)), big(3), ('<a>' || big(4) || '</a>')::xml, 'a');
-- @run
INSERT INTO t VALUES ('Key2', 'a=>1', DEFAULT, ARRAY['a=>1'::hstore, NULL], 'Bb', '{A,NULL}', 'top.sub.leaf', DEFAULT, '{a.b,c}', 'a.*', '0-306-40615-2', '{978-0-306-40615-7}', '(1,2),(3,4)', '<a b="1">x</a>', '<b/>');
INSERT INTO t (id) VALUES ('none2');
UPDATE t SET id = 'moved' WHERE id = 'key';
DELETE FROM t WHERE id = 'none';
UPDATE big SET small = 2;
UPDATE big SET id = 2;
DELETE FROM big;
