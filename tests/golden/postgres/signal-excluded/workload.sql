INSERT INTO debezium_signal VALUES ('s1', 'execute-snapshot', '{"data-collections": ["public.other"], "type": "incremental"}');
-- @wait
INSERT INTO debezium_signal VALUES ('s2', 'execute-snapshot', '{"data-collections": ["public.other","public.g","public.none"], "type": "incremental"}');
-- @wait
INSERT INTO debezium_signal VALUES ('s3', 'execute-snapshot', '{"data-collections": ["public.other","public.g"], "type": "blocking"}');
-- @wait
INSERT INTO g VALUES (3,3);
