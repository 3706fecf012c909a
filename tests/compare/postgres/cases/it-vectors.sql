-- Vectors in a schema of their own, with source types, and as JSON by the converter; text search by a trigger.
-- @property column.propagate.source.type=.*
-- @property transforms=vectors
-- @property transforms.vectors.type=io.debezium.transforms.VectorToJsonConverter
-- @compare {"requires": ["vector"]}
CREATE SCHEMA pgvector;
CREATE EXTENSION vector SCHEMA pgvector;
CREATE TABLE v (pk serial PRIMARY KEY, f_vector pgvector.vector(3), f_half pgvector.halfvec(3), f_sparse pgvector.sparsevec(3000), f_raw pgvector.vector);
ALTER TABLE v REPLICA IDENTITY FULL;
CREATE TABLE ts (id serial PRIMARY KEY, content text, v tsvector);
CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.v := to_tsvector('english', NEW.content); RETURN NEW; END$$;
CREATE TRIGGER fill BEFORE INSERT OR UPDATE ON ts FOR EACH ROW EXECUTE FUNCTION fill();
INSERT INTO v (f_vector, f_half, f_sparse, f_raw) VALUES ('[1,2,3]', '[101,102,103]', '{1: 201, 9: 209}/3000', '[7,8,9]');
-- @run
INSERT INTO v (f_vector, f_half, f_sparse) VALUES ('[10,20.5,30]', '[110,120,1e-4]', '{1: 301, 9: 309.25}/3000'), (NULL, NULL, NULL);
UPDATE v SET f_vector = '[5,7,9]', f_raw = '[1]';
DELETE FROM v;
INSERT INTO ts (content) VALUES ('This is a test of text that a trigger turns over');
UPDATE ts SET content = 'other words';
