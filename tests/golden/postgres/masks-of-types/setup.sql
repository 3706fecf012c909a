CREATE TYPE mood AS ENUM ('sad','happy');
CREATE DOMAIN citext_like AS varchar(30);
CREATE TABLE k (id int PRIMARY KEY, j json, jb jsonb, u uuid, n numeric(10,2), i inet, e mood, tz timestamptz, ti timetz, c char(4), ci citext_like, x bytea, a text[], iv interval, r int4range, h cidr, m macaddr, ts tsvector);
INSERT INTO k VALUES (1,'{"a":1}','{"b":2}','a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',12.34,'10.0.0.1','happy','2024-01-02 03:04:05+00','03:04:05+02','ab','dom','\x010203','{a,b}','1 day','[1,5)','10.0.0.0/8','08:00:2b:01:02:03','fat cat');
