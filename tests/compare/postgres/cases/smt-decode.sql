-- Logical messages that carry JSON for the outbox: decoded, then routed; other contents stay.
-- @property transforms=d,o
-- @property transforms.d.type=io.debezium.connector.postgresql.transforms.DecodeLogicalDecodingMessageContent
-- @property transforms.d.fields.null.include=true
-- @property transforms.d.predicate=m
-- @property transforms.o.type=io.debezium.transforms.outbox.EventRouter
-- @property transforms.o.table.expand.json.payload=true
-- @property transforms.o.predicate=m
-- @property predicates=m
-- @property predicates.m.type=org.apache.kafka.connect.transforms.predicates.TopicNameMatches
-- @property predicates.m.pattern=srv.message
-- @property message.prefix.include.list=box
-- @compare {"marker": null}
CREATE TABLE t (id integer PRIMARY KEY, v text);
-- @run
SELECT pg_logical_emit_message(true, 'box', '{"id":"c1","type":"OrderCreated","aggregateid":"1","aggregatetype":"order","payload":{"a":1,"b":[1,2],"c":{"d":null,"e":"x"}}}');
SELECT pg_logical_emit_message(true, 'box', '{"id":"c2","type":"OrderCreated","aggregateid":"2","aggregatetype":"order","payload":"text"}');
SELECT pg_logical_emit_message(false, 'box', '{"id":"c3","type":"OrderCreated","aggregateid":"3","aggregatetype":"customer","payload":"{\"a\":2.5}"}');
INSERT INTO t VALUES (1, 'v');
-- @sleep 2
