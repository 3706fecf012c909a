CREATE TABLE debezium_signal (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048));
CREATE TABLE g (id int PRIMARY KEY, a int);
INSERT INTO g VALUES (1,1);
CREATE TABLE other (id int PRIMARY KEY, a int);
INSERT INTO other VALUES (1,1);
