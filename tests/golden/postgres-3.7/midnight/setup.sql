CREATE TABLE midnight (id serial PRIMARY KEY, tt timetz, tt0 timetz(0), t time);
INSERT INTO midnight (tt, tt0, t) VALUES ('24:00:00+00', '24:00:00-02', '24:00');
