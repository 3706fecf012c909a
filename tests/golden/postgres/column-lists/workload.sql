INSERT INTO nokey VALUES (2, 'c', 'd');
INSERT INTO full_list VALUES (2, 'c', 'd');
INSERT INTO pair VALUES (2, 3, 'c');
