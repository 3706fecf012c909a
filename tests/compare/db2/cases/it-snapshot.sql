-- A snapshot at every start of the tables of a list; nulls that are selected again.
-- @property snapshot.mode=always
-- @property snapshot.include.collection.list=MYSCHEMA.A.*
-- @property schema.history.internal.store.only.captured.tables.ddl=true
-- @property include.schema.changes=false
-- @property post.processors=reselector
-- @property reselector.type=io.debezium.processors.reselect.ReselectColumnsPostProcessor
-- @property reselector.reselect.columns.include.list=MYSCHEMA.A1:V
CREATE TABLE MYSCHEMA.A1 (ID INTEGER NOT NULL PRIMARY KEY, V VARCHAR(20), N INTEGER);
CREATE TABLE MYSCHEMA.A2 (ID INTEGER NOT NULL PRIMARY KEY, V VARCHAR(20));
CREATE TABLE MYSCHEMA.B (ID INTEGER NOT NULL PRIMARY KEY, V VARCHAR(20));
INSERT INTO MYSCHEMA.A1 VALUES (1, 'Test1', 1), (2, NULL, 2);
INSERT INTO MYSCHEMA.A2 VALUES (1, 'Test1');
INSERT INTO MYSCHEMA.B VALUES (1, 'Test1');
CALL ASNCDC.ADDTABLE('MYSCHEMA', 'A1'); CALL ASNCDC.ADDTABLE('MYSCHEMA', 'A2'); CALL ASNCDC.ADDTABLE('MYSCHEMA', 'B'); VALUES ASNCDC.ASNCDCSERVICES('reinit', 'asncdc');
-- @run
INSERT INTO MYSCHEMA.A1 VALUES (5, NULL, 5);
-- @wait
UPDATE MYSCHEMA.A1 SET N = 6;
-- @stop
DELETE FROM MYSCHEMA.A1 WHERE ID = 1;
INSERT INTO MYSCHEMA.A1 VALUES (3, 'Test3', 3);
-- @start
-- @wait
INSERT INTO MYSCHEMA.B VALUES (9, 'end');
