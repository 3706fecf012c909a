CREATE TYPE mood AS ENUM ('sad','happy');
CREATE TABLE t (id int PRIMARY KEY, m mood, ma mood[]);
INSERT INTO t VALUES (1,'sad','{sad}');
