CREATE TABLE debezium_signal (id text PRIMARY KEY, type text, data text);
CREATE TABLE k (d date, v int, t time(3), PRIMARY KEY (d, v));
CREATE TABLE clock (t time(3) PRIMARY KEY, tt timetz);
INSERT INTO clock VALUES ('01:02:03.004', '10:00+02');
CREATE TABLE m (ts timestamptz PRIMARY KEY, v int);
INSERT INTO k (d, t, v) VALUES ('2020-01-01', '01:02:03.004', 1), ('2020-01-01', '01:02:04', 2), ('2020-01-02', '00:00', 3);
INSERT INTO m VALUES ('2020-01-01 01:02:03.000004+00', 1);
