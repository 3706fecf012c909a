INSERT INTO debezium_signal VALUES ('s1', 'execute-snapshot', '{"data-collections": ["public.g"], "type": "incremental"}');
-- @wait
INSERT INTO g (id,a,t) VALUES (3,3,'c');
