SELECT fill();
UPDATE times SET iv = '1 day' WHERE id = 5;
DELETE FROM times WHERE id = 6;
