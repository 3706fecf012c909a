INSERT INTO n VALUES (2, '(1,2),(3,4)', '<(0,0),1>', '{1,2,3}', '[(1,2),(3,4)]', '[(1,2)]', '((1,2))', '(1,2)');
UPDATE n SET v = 1 WHERE id = 1;
UPDATE n SET id = 3 WHERE id = 2;
DELETE FROM n WHERE id = 1;
