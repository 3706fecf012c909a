CREATE TABLE k (id timetz PRIMARY KEY, v text);
INSERT INTO k VALUES ('10:00+00', 'a'), ('12:00+02', 'b'), ('09:00+00', 'c');
CREATE TABLE bits (id varbit PRIMARY KEY, at timetz NOT NULL DEFAULT '10:00+00', v text);
INSERT INTO bits VALUES (B'0', '10:00+00', 'a'), (B'00', '12:00+02', 'b'), (B'1', '09:00+00', 'c');
