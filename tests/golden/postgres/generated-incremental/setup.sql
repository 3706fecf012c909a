CREATE TABLE debezium_signal (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048));
CREATE TABLE g (id int PRIMARY KEY, a int, b int GENERATED ALWAYS AS (a*2) STORED, t text);
INSERT INTO g (id,a,t) VALUES (1,1,'a'),(2,2,'b');
