INSERT INTO outbox VALUES (1, 'order', '7', 'Made', '{"a":[],"b":[1],"c":{"d":[]},"e":[[],[]]}');
INSERT INTO outbox VALUES (2, 'order', '7', 'Made', '{"items":[{"x":[]},{"x":[]}]}');
INSERT INTO outbox VALUES (3, 'order', '8', 'Made', '{"items":[]}');
-- @wait
INSERT INTO part_a VALUES (1, 'a');
-- @wait
INSERT INTO part_b VALUES (1, 'b');
-- @wait
INSERT INTO other VALUES (1, 'c');
-- @wait
UPDATE part_a SET v = 'x';
-- @wait
DELETE FROM part_b;
