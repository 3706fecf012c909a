-- Messages by lists of prefixes with blanks and expressions; xmin is not read.
-- @property message.prefix.include.list=included_prefix, prefix:included, ano.*er_included
-- @property xmin.fetch.interval.ms=0
-- @property publication.autocreate.mode=no_tables
-- @compare {"marker": null}
CREATE TABLE t (id integer PRIMARY KEY);
-- @run
SELECT pg_logical_emit_message(false, 'included_prefix', 'content');
SELECT pg_logical_emit_message(false, 'excluded_prefix', 'content');
SELECT pg_logical_emit_message(false, 'prefix:excluded', 'content');
SELECT pg_logical_emit_message(true, 'prefix:included', 'content');
SELECT pg_logical_emit_message(true, 'another_included', E'bar'::bytea);
INSERT INTO t VALUES (1);
