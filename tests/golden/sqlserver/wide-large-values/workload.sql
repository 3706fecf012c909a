INSERT INTO w VALUES (2,'a',1,1,1,1,1,1,'h',1,0x02);
UPDATE w SET b = 2 WHERE id = 2;
UPDATE w SET a = 'A' WHERE id = 2;
UPDATE w SET h = 'H' WHERE id = 2;
UPDATE w SET j = 0x03, i = 4 WHERE id = 2;
DELETE FROM w WHERE id = 2;
