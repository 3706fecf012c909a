CREATE TABLE u (id int PRIMARY KEY, d date, ts timestamptz, iv interval, c circle, b box);
ALTER TABLE u REPLICA IDENTITY FULL;
INSERT INTO u VALUES (1, '2020-01-01', '2020-01-01 10:00:00.5+00', '1 day', '<(1,2),3>', '(1,2),(3,4)'), (2, NULL, NULL, NULL, NULL, NULL);
