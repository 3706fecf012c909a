-- Partitions by fields and hash; header to value; a logical table; geometry.
-- @property transforms=p,h,g,s
-- @property transforms.p.type=io.debezium.transforms.partitions.PartitionRouting
-- @property transforms.p.partition.payload.fields=change.id,source.table
-- @property transforms.p.partition.topic.num=7
-- @property transforms.p.partition.hash.function=murmur
-- @property transforms.p.predicate=t
-- @property transforms.h.type=io.debezium.transforms.HeaderToValue
-- @property transforms.h.headers=__debezium.context.connectorName
-- @property transforms.h.fields=source.conn
-- @property transforms.h.operation=copy
-- @property transforms.h.predicate=t
-- @property transforms.g.type=io.debezium.transforms.GeometryFormatTransformer
-- @property transforms.s.type=io.debezium.transforms.SwapGeometryCoordinates
-- @property predicates=t
-- @property predicates.t.type=org.apache.kafka.connect.transforms.predicates.TopicNameMatches
-- @property predicates.t.pattern=srv.public.*
-- @compare {"partitions": true, "ignore_topics": ["message$"]}
CREATE TABLE a (id integer PRIMARY KEY, p point, v text);
INSERT INTO a VALUES (1, '(1,2)', 'v'), (2, NULL, 'w');
-- @run
INSERT INTO a VALUES (3, '(3,4)', 'x');
UPDATE a SET v = 'y' WHERE id = 3;
UPDATE a SET id = 5 WHERE id = 3;
DELETE FROM a WHERE id = 1;
