-- Tables in the order of their rows.
-- @property snapshot.tables.order.by.row.count=ascending
-- @property notification.enabled.channels=sink,log
-- @property notification.sink.topic.name=notes
-- @property table.include.list=public.big,public.mid,public.s.*,public.empty,public.never,public.view
CREATE TABLE big (id integer PRIMARY KEY, v text);
CREATE TABLE mid (id integer PRIMARY KEY, v text);
CREATE TABLE small (id integer PRIMARY KEY, v text);
CREATE TABLE same (id integer PRIMARY KEY, v text);
CREATE TABLE empty (id integer PRIMARY KEY, v text);
CREATE TABLE never (id integer PRIMARY KEY, v text);
INSERT INTO big SELECT i, 'v' || i FROM generate_series(1, 20) i;
INSERT INTO mid SELECT i, 'v' || i FROM generate_series(1, 10) i;
INSERT INTO small SELECT i, 'v' || i FROM generate_series(1, 3) i;
INSERT INTO same SELECT i, 'v' || i FROM generate_series(1, 3) i;
ANALYZE big; ANALYZE mid; ANALYZE small; ANALYZE same; ANALYZE empty;
INSERT INTO never SELECT i, 'v' || i FROM generate_series(1, 2) i;
-- @run
INSERT INTO big VALUES (100, 'x');
