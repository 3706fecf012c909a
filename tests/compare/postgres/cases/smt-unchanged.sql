-- Fields that are dropped by a header; names of fields with dots; nested.
-- @property transforms=c,u
-- @property transforms.c.type=io.debezium.transforms.ExtractChangedRecordState
-- @property transforms.c.header.changed.name=Changed
-- @property transforms.c.header.unchanged.name=Unchanged
-- @property transforms.u.type=io.debezium.transforms.ExtractNewRecordState
-- @property transforms.u.drop.fields.header.name=Unchanged
-- @property transforms.u.drop.fields.keep.schema.compatible=false
-- @property transforms.u.drop.fields.from.key=true
-- @property transforms.u.delete.tombstone.handling.mode=rewrite
-- @compare {"ignore_topics": ["message$"]}
CREATE TABLE a (id integer, k integer, v text DEFAULT 'dflt', n integer NOT NULL DEFAULT 7, PRIMARY KEY (id, k));
ALTER TABLE a REPLICA IDENTITY FULL;
INSERT INTO a VALUES (1, 2, 'v', 1), (2, 3, 'w', 5);
-- @run
INSERT INTO a VALUES (3, 4, 'x', 6);
UPDATE a SET v = 'y' WHERE id = 3;
UPDATE a SET n = 9 WHERE id = 3;
UPDATE a SET n = 9 WHERE id = 3;
UPDATE a SET k = 5 WHERE id = 3;
DELETE FROM a WHERE id = 1;
