CREATE TABLE shapes (id serial PRIMARY KEY, b box, c circle, l line, s lseg, p path, g polygon, o point, need circle NOT NULL DEFAULT '<(0,0),1>');
ALTER TABLE shapes REPLICA IDENTITY FULL;
CREATE FUNCTION fill() RETURNS void LANGUAGE sql AS $$
INSERT INTO shapes (b, c, l, s, p, g, o) VALUES
  ('(1,2),(3.5,-4)', '<(1,2.25),3>', '{1,-2.5,3}', '[(1,2),(3,4)]', '[(1,2),(3,4),(5,6)]', '((0,0),(1,1),(1,0))', '(1,2)'),
  ('(1e10,2e-10),(-3,-4)', '<(-1,-2),0>', '{0,1,0}', '[(0,0),(0,0)]', '((1,2),(3,4))', '((0,0),(1,1),(1,0),(0,0))', '(0,0)'),
  (NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  ('(0,0),(0,0)', '<(0,0),Infinity>', '{3,4,-5}', '[(NaN,1),(2,3)]', '[(1,1)]', '((7,8))', '(Infinity,-Infinity)');
$$;
SELECT fill();
