INSERT INTO debezium_signal VALUES ('s1', 'execute-snapshot', '{"data-collections": ["public.a","public.b","public.c"], "type": "incremental", "additional-conditions":[{"data-collection":"public.b","filter":"nocolumn=1"}]}');
-- @wait
INSERT INTO c VALUES (3);
