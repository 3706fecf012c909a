CREATE TABLE f (id int PRIMARY KEY, r real, d double precision, n numeric(10,2), ra real[], t text, ta text[], da date, ti time, s timestamp(3), sa timestamp(3)[], bo boolean);
INSERT INTO f VALUES (1, 'NaN', '-Infinity', 12.50, '{NaN,1.5,Infinity}', 'a "b" \ c', '{"x \"y\" \\ z",NULL,"ü😀"}', '2024-02-29', '12:34:56.789', '2024-02-29 12:34:56.789', '{2024-02-29 00:00:00}', true);
