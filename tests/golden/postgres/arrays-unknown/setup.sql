CREATE TYPE comp AS (a int, b text);
CREATE TABLE t (id int PRIMARY KEY, m money[], itv interval[], pt point[], vb varbit(3)[], x name[], ln line[], c comp, ca comp[], cr circle);
INSERT INTO t VALUES (1,'{1.5}','{1 day}','{"(1,2)"}','{101}','{nm}','{"{1,2,3}"}','(1,b)','{"(1,b)"}','<(1,2),3>');
