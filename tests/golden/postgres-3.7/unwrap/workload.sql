INSERT INTO u VALUES (3, 'infinity', '-infinity', '-1 mon', '<(1,2),3>', '(1,2),(3,4)'), (4, NULL, NULL, NULL, NULL, NULL);
UPDATE u SET d = '2021-01-01' WHERE id = 1;
DELETE FROM u WHERE id = 1;
