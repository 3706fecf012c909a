-- Positions confirmed by the driver bring heartbeats.
-- @property lsn.flush.mode=connector_and_driver
CREATE TABLE a (id integer PRIMARY KEY, v text);
INSERT INTO a VALUES (1, 'v');
-- @run
INSERT INTO a VALUES (2, 'v');
