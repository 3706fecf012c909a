SELECT fill();
UPDATE shapes SET c = '<(9,9),9>' WHERE id = 5;
DELETE FROM shapes WHERE id = 6;
