-- Incremental snapshots of tables with keys of many types (but times, which the engine gives up), while rows change; also one without a key and one that is not there.
-- @property signal.data.collection=public.debezium_signal
-- @property incremental.snapshot.chunk.size=2
-- @compare {"settle_seconds": 2.5, "unordered_reads": true}

CREATE TABLE debezium_signal (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048));
CREATE TYPE mood AS ENUM ('sad', 'ok', 'very happy');
CREATE TABLE k_uuid (id uuid PRIMARY KEY, v text);
CREATE TABLE k_enum (id mood PRIMARY KEY, v text);
CREATE TABLE k_text (id varchar(20) PRIMARY KEY, v text);
CREATE TABLE k_num (id numeric PRIMARY KEY, v text);
CREATE TABLE k_num2 (id numeric(10,2) PRIMARY KEY, v text);
CREATE TABLE k_time (id date, d date, v text, PRIMARY KEY (id, d));
CREATE TABLE k_mixed (a integer, b varchar(5), c boolean, v text, PRIMARY KEY (c, b, a));
CREATE TABLE "K Odd" ("the id" bigint PRIMARY KEY, "v""v" text);
CREATE TABLE k_none (v text);
CREATE TABLE k_bytes (id bytea PRIMARY KEY, v text);
CREATE TABLE k_char (id char(4) PRIMARY KEY, v text);
CREATE TABLE k_unique (id integer NOT NULL, v text);
CREATE UNIQUE INDEX k_unique_i ON k_unique (id);
INSERT INTO k_uuid SELECT ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1' || i)::uuid, 'v' || i FROM generate_series(1, 5) i;
INSERT INTO k_enum VALUES ('sad', 'a'), ('very happy', 'b'), ('ok', 'c');
INSERT INTO k_text VALUES ('it''s', 'a'), ('Zoë', 'b'), ('a', 'c'), ('B', 'd'), ('', 'e'), (' ', 'f');
INSERT INTO k_num VALUES (1.5, 'a'), (1e20, 'b'), (-3, 'c'), (0.000001, 'd');
INSERT INTO k_num2 VALUES (1.5, 'a'), (2, 'b'), (-3.25, 'c');
INSERT INTO k_time VALUES ('2024-01-01 00:00:00.123456+00', '2024-01-01', 'a'), ('2024-01-01 00:00:00.123456+00', '2024-01-02', 'b'), ('1999-12-31 23:59:59+00', '1999-01-01', 'c');
INSERT INTO k_mixed VALUES (1, 'x', true, 'a'), (1, 'x', false, 'b'), (2, 'x', true, 'c'), (1, 'y', false, 'd'), (3, 'z', true, 'e');
INSERT INTO "K Odd" VALUES (1, 'a'), (-5, 'b'), (9223372036854775807, 'c');
INSERT INTO k_none VALUES ('a'), ('b');
INSERT INTO k_bytes VALUES ('\x00', 'a'), ('\xff', 'b'), ('\x', 'c');
INSERT INTO k_char VALUES ('a', 'a'), ('ab', 'b'), ('abcd', 'c');
INSERT INTO k_unique VALUES (1, 'a'), (2, 'b'), (3, 'c');
-- @run
INSERT INTO debezium_signal VALUES ('1', 'execute-snapshot', '{"type": "INCREMENTAL", "data-collections": ["public.k_uuid", "public.k_text", "public.k_num2", "public.k_mixed", "public.k_unique"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('2', 'execute-snapshot', '{"data-collections": ["public.k_enum"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('3', 'execute-snapshot', '{"data-collections": ["public.k_time"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('4', 'execute-snapshot', '{"data-collections": ["public.k_num"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('5', 'execute-snapshot', '{"data-collections": ["public.k_none", "public.absent", "public.k_char"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('6', 'execute-snapshot', '{"data-collections": ["public.k_bytes"]}');
-- @wait
INSERT INTO debezium_signal VALUES ('7', 'execute-snapshot', '{"data-collections": ["public.\"K Odd\""]}');
-- @wait
INSERT INTO debezium_signal VALUES ('9', 'execute-snapshot', '{"data-collections": ["public.k_(uuid|mixed)"], "surrogate-key": "v"}');
-- @wait
INSERT INTO debezium_signal VALUES ('10', 'execute-snapshot', '{"data-collections": ["public.k_mixed", "public.k_text"], "additional-conditions": [{"data-collection": "public.k_mixed", "filter": "a = 1 AND c"}, {"data-collection": "public.k_text", "filter": "id LIKE ''%s''"}]}');
-- @wait
INSERT INTO debezium_signal VALUES ('11', 'unknown-type', '{}'), ('12', 'log', '{"message": "hello {}"}'), ('13', 'schema-changes', '{"database": "golden", "schema": "public", "changes": []}');
INSERT INTO debezium_signal VALUES ('14', 'execute-snapshot', 'no json'), ('15', 'execute-snapshot', NULL), ('16', 'execute-snapshot', '{"data-collections": []}'), ('17', 'stop-snapshot', '{"type": "incremental"}');
INSERT INTO debezium_signal VALUES ('18', 'execute-snapshot', '{"type": "INCREMENTAL", "data-collections": ["public.k_.*"], "additional-conditions": [{"data-collection": "public.k_.*", "filter": "v = ''a''"}]}');
