CREATE TABLE ev (id int, d date NOT NULL, v text, PRIMARY KEY (id,d)); CREATE TABLE pr (id int, d date NOT NULL, v text, PRIMARY KEY (id,d)) PARTITION BY RANGE (d); CREATE TABLE pr1 PARTITION OF pr FOR VALUES FROM ('2020-01-01') TO ('2025-01-01');
INSERT INTO ev SELECT i,'2024-01-01','v' FROM generate_series(1,20) i; INSERT INTO pr SELECT i,'2024-01-01','v' FROM generate_series(1,20) i;
