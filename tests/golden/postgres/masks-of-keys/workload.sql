INSERT INTO m VALUES ('three','3');
UPDATE m SET v='x' WHERE id='one';
UPDATE m SET id='four' WHERE id='two';
DELETE FROM m WHERE id='one';
UPDATE n SET v='w';
DELETE FROM n;
