-- Structures of tables that the snapshot does not read, of one that is registered later, skipped deletions of key changes, topics without the schema.
-- @property include.schema.changes=true
-- @property notification.enabled.channels=sink
-- @property notification.sink.topic.name=notes
-- @property snapshot.include.collection.list=MYSCHEMA.(A|B)
-- @property topic.naming.strategy=io.debezium.schema.DefaultTopicNamingStrategy
-- @property skipped.operations=d
-- @property provide.transaction.metadata=true
CREATE TABLE MYSCHEMA.A (ID INTEGER NOT NULL PRIMARY KEY, V INTEGER); CREATE TABLE MYSCHEMA.B (ID INTEGER NOT NULL PRIMARY KEY, V INTEGER); CREATE TABLE MYSCHEMA.E (ID INTEGER NOT NULL PRIMARY KEY, V INTEGER); CREATE TABLE MYSCHEMA.L (ID INTEGER NOT NULL PRIMARY KEY, V INTEGER);
INSERT INTO MYSCHEMA.A VALUES (1, 1), (2, 2); INSERT INTO MYSCHEMA.B VALUES (1, 1);
CALL ASNCDC.ADDTABLE('MYSCHEMA', 'A'); CALL ASNCDC.ADDTABLE('MYSCHEMA', 'B'); CALL ASNCDC.ADDTABLE('MYSCHEMA', 'E'); VALUES ASNCDC.ASNCDCSERVICES('reinit', 'asncdc');
-- @run
UPDATE MYSCHEMA.A SET ID = 9 WHERE ID = 1;
-- @wait
DELETE FROM MYSCHEMA.A WHERE ID = 2;
-- @wait
CALL ASNCDC.ADDTABLE('MYSCHEMA', 'L'); VALUES ASNCDC.ASNCDCSERVICES('reinit', 'asncdc');
INSERT INTO MYSCHEMA.L VALUES (1, 1);
-- @wait
INSERT INTO MYSCHEMA.A VALUES (20, 1);
