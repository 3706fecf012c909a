CREATE TABLE f (id int PRIMARY KEY, b box, c circle, p path, g polygon, o point);
INSERT INTO f VALUES (1, '(1,2),(3,4)', '<(0,1),1>', '[(1,2),(3,4)]', '((1,2),(3,4),(5,7))', '(1,2)');
