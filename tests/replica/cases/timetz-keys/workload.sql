UPDATE k SET v = v || '2';
-- @wait
DELETE FROM k WHERE id = '12:00+02';
INSERT INTO k VALUES ('08:00-01', 'd');
-- @wait
