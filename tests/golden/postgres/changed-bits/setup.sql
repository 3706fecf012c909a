CREATE TABLE t (id int PRIMARY KEY, b bit(8), vb varbit(9), n numeric(5,2), by bytea, a int[], p point);
ALTER TABLE t REPLICA IDENTITY FULL;
INSERT INTO t VALUES (1,B'00000001',B'101',1.5,'\x01','{1}','(1,2)');
