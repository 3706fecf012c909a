INSERT INTO v SELECT id + 100, d, ts, tstz, n, r, f, t, "Quoted Col", "a""b", "ünï", "sel.ect", ra, fa, na, da FROM v;
UPDATE v SET n = 'other' WHERE id = 120;
DELETE FROM v WHERE id = 120;
