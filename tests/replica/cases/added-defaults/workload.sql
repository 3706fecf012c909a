ALTER TABLE a ADD COLUMN nan numeric(10,3) DEFAULT 'NaN', ADD COLUMN nested int[] DEFAULT '{{1,2},{3,4}}', ADD COLUMN plain int[] DEFAULT '{1,NULL}', ADD COLUMN nested_text text[] DEFAULT '{{a,"b,c"}}', ADD COLUMN span interval DEFAULT '1 mon', ADD COLUMN negative float8 DEFAULT '-0', ADD COLUMN bits bit varying(5) DEFAULT B'101', ADD COLUMN place point DEFAULT '(1,2)', ADD COLUMN money money DEFAULT 1.5;
ALTER TABLE b ADD COLUMN c positive, ADD COLUMN at timestamptz DEFAULT now();
ALTER TABLE c ADD COLUMN late timestamptz DEFAULT 'infinity';
INSERT INTO a VALUES (3, 'c');
UPDATE b SET v = 'u' WHERE id = 1;
INSERT INTO c VALUES (2, 'b');
-- @wait
