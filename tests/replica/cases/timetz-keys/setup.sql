CREATE TABLE k (id timetz PRIMARY KEY, v text);
INSERT INTO k VALUES ('10:00+00', 'a'), ('12:00+02', 'b'), ('09:00+00', 'c');
