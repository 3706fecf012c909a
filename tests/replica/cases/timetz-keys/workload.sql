UPDATE k SET v = v || '2';
-- @wait
DELETE FROM k WHERE id = '12:00+02';
INSERT INTO k VALUES ('08:00-01', 'd');
-- @wait
UPDATE bits SET v = v || '2';
DELETE FROM bits WHERE id = B'00';
INSERT INTO bits VALUES (B'01', '08:00-01', 'd'), (B'000', '08:00-01', 'e');
UPDATE bits SET id = B'0000' WHERE id = B'000';
-- @wait
