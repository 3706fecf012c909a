INSERT INTO f VALUES (2, '(1,2),(3,4)', '<(0,1),1>', '[(1,2),(3,4)]', '((1,2),(3,4),(5,7))', '(1,2)');
DELETE FROM f WHERE id = 1;
