INSERT INTO midnight (tt, tt0) VALUES ('24:00:00+00', '24:00:00-02');
