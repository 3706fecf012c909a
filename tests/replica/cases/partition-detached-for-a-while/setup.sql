CREATE TABLE m (id int, day date, v text, n int, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE m1 PARTITION OF m FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
INSERT INTO m VALUES (1, '2024-01-05', 'a', 1);
CREATE TABLE loose (n int, v text, gone int, day date NOT NULL, id int NOT NULL, PRIMARY KEY (id, day));
ALTER TABLE loose DROP COLUMN gone;
INSERT INTO loose (id, day, v, n) VALUES (2, '2024-02-05', 'b', 2), (3, '2024-02-06', 'c', 3);
