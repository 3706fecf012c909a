-- Columns that are included, masks, keys by expressions, a unique index, rolled back transactions, own SELECTs, rows without envelope.
-- @property column.include.list=MYSCHEMA.A.(ID|V|N),MYSCHEMA.B.*
-- @property column.mask.hash.SHA-256.with.salt.abc=MYSCHEMA.A.V
-- @property column.truncate.to.2.chars=MYSCHEMA.B.V
-- @property provide.transaction.metadata=true
-- @property message.key.columns=MYSCHEMA.B:V,ID
-- @property snapshot.select.statement.overrides=MYSCHEMA.A
-- @property snapshot.select.statement.overrides.MYSCHEMA.A=SELECT ID, V, N FROM MYSCHEMA.A WHERE ID > 1
-- @property include.schema.changes=false
-- @property transforms=u
-- @property transforms.u.type=io.debezium.transforms.ExtractNewRecordState
-- @property transforms.u.add.fields=op,source.snapshot,before.V:old
-- @property transforms.u.add.headers=op
-- @property transforms.u.delete.tombstone.handling.mode=rewrite-with-tombstone
-- @property transforms.u.predicate=tables
-- @property predicates=tables
-- @property predicates.tables.type=org.apache.kafka.connect.transforms.predicates.TopicNameMatches
-- @property predicates.tables.pattern=db2.MYSCHEMA.*
CREATE TABLE MYSCHEMA.A (ID INTEGER NOT NULL PRIMARY KEY, V VARCHAR(40), N DECIMAL(6,1) NOT NULL, HIDDEN INTEGER);
CREATE TABLE MYSCHEMA.B (ID INTEGER NOT NULL PRIMARY KEY, V VARCHAR(40) NOT NULL, T TIME, TS TIMESTAMP);
INSERT INTO MYSCHEMA.A VALUES (1, 'one', 1, NULL), (2, 'two', 2, 3), (3, NULL, 3, NULL);
INSERT INTO MYSCHEMA.B VALUES (1, 'text', '01:02:03', '2024-01-02 03:04:05.677');
CALL ASNCDC.ADDTABLE('MYSCHEMA', 'A'); CALL ASNCDC.ADDTABLE('MYSCHEMA', 'B'); VALUES ASNCDC.ASNCDCSERVICES('reinit', 'asncdc');
-- @run
BEGIN;
UPDATE MYSCHEMA.A SET HIDDEN = 5 WHERE ID = 1;
UPDATE MYSCHEMA.A SET V = 'uno', N = 1.5 WHERE ID = 1;
INSERT INTO MYSCHEMA.B VALUES (2, 'ünïcode', NULL, NULL);
COMMIT;
BEGIN;
DELETE FROM MYSCHEMA.A WHERE ID = 2;
ROLLBACK;
-- @wait
DELETE FROM MYSCHEMA.A WHERE ID = 2;
UPDATE MYSCHEMA.B SET ID = 7 WHERE ID = 1;
UPDATE MYSCHEMA.B SET V = 'other' WHERE ID = 7;
-- @wait
INSERT INTO MYSCHEMA.A VALUES (9, 'end', 0, NULL);
