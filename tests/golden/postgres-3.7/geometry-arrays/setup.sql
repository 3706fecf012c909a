CREATE DOMAIN area AS polygon;
CREATE TABLE g (id int PRIMARY KEY, b box[], c circle[], l line[], s lseg[], p path[], g polygon[], o point[], a area, aa area[]);
INSERT INTO g VALUES (1, '{(1,2),(3,4);(0,0),(5,6)}', '{"<(0,0),1>",NULL}', '{"{1,-2.5,3}"}', '{"[(1,2),(3,4)]"}', '{"[(1,2),(3,4),(5,6)]","((0,0),(1,1))"}', '{"((0,0),(1,1),(1,0))"}', '{"(1,2)"}', '((0,0),(1,1),(1,0))', '{"((0,0),(1,1),(1,0))"}'),
 (2, '{}', '{}', '{}', '{}', '{}', '{}', '{}', NULL, '{}'), (3, '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', NULL, NULL);
