-- Values that cannot be converted, under skip.
-- @property event.converting.failure.handling.mode=skip
-- @property time.precision.mode=nanoseconds
CREATE TABLE a (id integer PRIMARY KEY, n numeric(5,2), q numeric, t timestamp, ts timestamp[], na numeric[], m integer[][], d date, b bit(3)[]);
INSERT INTO a VALUES (1, 'NaN', 'NaN', '0001-01-01', '{0001-01-01}', '{NaN}', '{{1,2},{3,4}}', 'infinity', '{101}');
-- @run
INSERT INTO a VALUES (2, 'NaN', 'Infinity', '9999-01-01', '{9999-01-01}', '{NaN}', '{{1,2},{3,4}}', '-infinity', '{101}');
INSERT INTO a VALUES (3, 1.5, 2.5, '2024-01-01', '{2024-01-01}', '{1}', '{1,2}', '2024-01-01', '{101}');
