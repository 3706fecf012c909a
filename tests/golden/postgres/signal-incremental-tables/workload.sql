INSERT INTO debezium_signal VALUES ('a', 'execute-snapshot', '{"data-collections": ["public.nothing", "public.absent", "public.customers"], "type": "incremental"}');
-- @wait
INSERT INTO customers VALUES (60, 'first6', 'last6', 'mail60@acme.com');
