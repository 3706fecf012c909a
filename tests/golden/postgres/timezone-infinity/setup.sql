CREATE TABLE f (id int PRIMARY KEY, s timestamp, d date);
INSERT INTO f VALUES (1,'infinity','infinity'),(2,'-infinity','-infinity');
