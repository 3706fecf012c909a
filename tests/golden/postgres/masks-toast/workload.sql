UPDATE m SET x = 2;
UPDATE m SET h = NULL, x = 3;
UPDATE m SET c = 'z';
DELETE FROM m;
