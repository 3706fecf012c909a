-- Heartbeats under their own name, with positions confirmed by the driver.
-- @property heartbeat.interval.ms=200
-- @property topic.heartbeat.name=beats
-- @property lsn.flush.mode=connector_and_driver
-- @property topic.delimiter=-
-- @property provide.transaction.metadata=true
-- @property topic.transaction=tx
-- @compare {"collapse_topics": ["^beats"]}
CREATE TABLE a (id integer PRIMARY KEY, v text);
INSERT INTO a VALUES (1, 'v');
-- @run
INSERT INTO a VALUES (2, 'v');
