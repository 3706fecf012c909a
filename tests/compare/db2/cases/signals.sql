-- Incremental and blocking snapshots: conditions, a surrogate key, a stop, an unknown table; notifications.
-- @property signal.data.collection=MYSCHEMA.DEBEZIUM_SIGNAL
-- @property incremental.snapshot.chunk.size=2
-- @property notification.enabled.channels=sink
-- @property notification.sink.topic.name=notes
-- @compare {"settle_seconds": 6, "unordered_reads": true}
CREATE TABLE MYSCHEMA.DEBEZIUM_SIGNAL (ID VARCHAR(64) NOT NULL PRIMARY KEY, TYPE VARCHAR(32) NOT NULL, DATA VARCHAR(2048));
CREATE TABLE MYSCHEMA.T (ID INTEGER NOT NULL PRIMARY KEY, V INTEGER);
CREATE TABLE MYSCHEMA.C (A INTEGER NOT NULL, B VARCHAR(5) NOT NULL, V INTEGER, PRIMARY KEY (B, A));
CREATE TABLE MYSCHEMA.N (V INTEGER);
INSERT INTO MYSCHEMA.T VALUES (1, 1), (2, 2), (3, 1), (4, NULL), (5, 1);
INSERT INTO MYSCHEMA.C VALUES (1, 'x', 1), (2, 'x', 2), (1, 'y', 3);
INSERT INTO MYSCHEMA.N VALUES 1, 2;
CALL ASNCDC.ADDTABLE('MYSCHEMA', 'DEBEZIUM_SIGNAL'); CALL ASNCDC.ADDTABLE('MYSCHEMA', 'T'); CALL ASNCDC.ADDTABLE('MYSCHEMA', 'C'); CALL ASNCDC.ADDTABLE('MYSCHEMA', 'N'); VALUES ASNCDC.ASNCDCSERVICES('reinit', 'asncdc');
-- @run
INSERT INTO MYSCHEMA.DEBEZIUM_SIGNAL VALUES ('1', 'execute-snapshot', '{"data-collections": ["MYSCHEMA.T", "MYSCHEMA.C"]}');
-- @wait
INSERT INTO MYSCHEMA.DEBEZIUM_SIGNAL VALUES ('2', 'execute-snapshot', '{"data-collections": ["MYSCHEMA.N", "MYSCHEMA.ABSENT", "MYSCHEMA.C"]}');
-- @wait
INSERT INTO MYSCHEMA.DEBEZIUM_SIGNAL VALUES ('3', 'execute-snapshot', '{"data-collections": ["MYSCHEMA.T"], "additional-conditions": [{"data-collection": "MYSCHEMA.T", "filter": "V = 1"}]}');
-- @wait
INSERT INTO MYSCHEMA.DEBEZIUM_SIGNAL VALUES ('4', 'execute-snapshot', '{"type": "blocking", "data-collections": ["MYSCHEMA.T"]}');
-- @wait
INSERT INTO MYSCHEMA.DEBEZIUM_SIGNAL VALUES ('5', 'stop-snapshot', '{}');
INSERT INTO MYSCHEMA.DEBEZIUM_SIGNAL VALUES ('6', 'strange', NULL);
-- @wait
INSERT INTO MYSCHEMA.DEBEZIUM_SIGNAL VALUES ('7', 'execute-snapshot', '{"data-collections": ["MYSCHEMA.(T|C)"]}');
-- @wait
UPDATE MYSCHEMA.T SET V = 9 WHERE ID = 1;
DELETE FROM MYSCHEMA.T WHERE ID = 2;
