INSERT INTO outbox VALUES (1, 'order', '7', 'Made', '{"a":[],"n":null,"c":{"d":[],"n":null}}');
INSERT INTO outbox VALUES (3, 'order', '7', 'Made', '{"a":[[]],"b":[{"x":[]}]}');
INSERT INTO outbox VALUES (4, 'order', '7', 'Made', '{"a":[null],"b":["x"]}');
