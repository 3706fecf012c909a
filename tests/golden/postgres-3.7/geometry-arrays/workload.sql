INSERT INTO g SELECT id + 10, b, c, l, s, p, g, o, a, aa FROM g;
UPDATE g SET a = '((1,1))' WHERE id = 11;
DELETE FROM g WHERE id = 12;
