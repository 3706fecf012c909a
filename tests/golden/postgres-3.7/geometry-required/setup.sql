CREATE TABLE n (id int PRIMARY KEY, b box NOT NULL, c circle NOT NULL, l line NOT NULL, s lseg NOT NULL, p path NOT NULL, g polygon NOT NULL, o point NOT NULL, db box NOT NULL DEFAULT '(1,1),(0,0)', oc circle DEFAULT '<(1,2),3>', v int);
INSERT INTO n VALUES (1, '(1,2),(3,4)', '<(0,0),1>', '{1,2,3}', '[(1,2),(3,4)]', '[(1,2)]', '((1,2))', '(1,2)');
