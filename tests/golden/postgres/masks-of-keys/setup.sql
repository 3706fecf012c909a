CREATE TABLE m (id varchar(20) PRIMARY KEY, v text);
INSERT INTO m VALUES ('one','1'),('two','2');
CREATE TABLE n (a varchar(20), b int, v text, PRIMARY KEY (a,b));
INSERT INTO n VALUES ('x',1,'v');
