-- Unwrapped rows with all kinds of added fields, from a streamed and a snapshot source.
-- @property provide.transaction.metadata=true
-- @property transforms=u
-- @property transforms.u.type=io.debezium.transforms.ExtractNewRecordState
-- @property transforms.u.add.fields=op:operation,table,source.db,transaction.id,transaction.total_order,before.v,nothing,source.snapshot
-- @property transforms.u.add.headers=op,db,source.schema,transaction.data_collection_order,after.id
-- @property transforms.u.add.headers.prefix=h_
-- @property transforms.u.add.fields.prefix=m.
-- @property transforms.u.delete.tombstone.handling.mode=rewrite-with-tombstone
-- @property transforms.u.replace.null.with.default=false
-- @property transforms.u.route.by.field=v
-- @property transforms.u.predicate=t
-- @property predicates=t
-- @property predicates.t.type=org.apache.kafka.connect.transforms.predicates.TopicNameMatches
-- @property predicates.t.pattern=srv.public.*
-- @property skipped.operations=none
-- @compare {"ignore_topics": ["message$"]}
CREATE TABLE a (id integer PRIMARY KEY, v text DEFAULT 'dflt', n integer DEFAULT 7);
ALTER TABLE a REPLICA IDENTITY FULL;
INSERT INTO a VALUES (1, 'v', 1), (2, 'w', NULL);
-- @run
INSERT INTO a VALUES (3, 'x', NULL);
UPDATE a SET v = 'y' WHERE id = 3;
UPDATE a SET id = 5 WHERE id = 3;
DELETE FROM a WHERE id = 1;
TRUNCATE a;
