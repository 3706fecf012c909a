INSERT INTO k VALUES (1,2,'v');
UPDATE k SET b=5;
UPDATE k SET b=6, v='w';
UPDATE k SET v='w';
