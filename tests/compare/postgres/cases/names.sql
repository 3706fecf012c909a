-- Odd names of schemas, tables, columns and topics.
-- @property topic.prefix=srv-1.x
-- @property column.propagate.source.type=.*
CREATE SCHEMA "Sch-ema.x";
CREATE SCHEMA with_under_score;
CREATE TABLE "Sch-ema.x"."Ta.ble" (id integer PRIMARY KEY, "a.b" text, "c d" text, "1x" integer, "sel""ect" text, "order" integer, "Ümlaut" text, "$d" text, "user" text, "dash-ed" integer NOT NULL DEFAULT 3);
CREATE TABLE with_under_score.t_1 (id integer PRIMARY KEY, "_x" text, "x_" text, "__deleted" text);
CREATE TABLE "back\slash" (id integer PRIMARY KEY, "b\c" text);
CREATE TABLE "UPPER" ("ID" integer PRIMARY KEY, "V" text);
CREATE TABLE "日本" (id integer PRIMARY KEY, "名" text);
CREATE TABLE "it's" (id integer PRIMARY KEY, "it's" text DEFAULT 'it''s');
INSERT INTO "Sch-ema.x"."Ta.ble" VALUES (1, 'a', 'b', 1, 'c', 2, 'ü', '$', 'u');
INSERT INTO with_under_score.t_1 VALUES (1, 'a', 'b', 'c');
INSERT INTO "back\slash" VALUES (1, 'x');
INSERT INTO "UPPER" VALUES (1, 'x');
INSERT INTO "日本" VALUES (1, 'x');
INSERT INTO "it's" VALUES (1, 'x');
-- @run
UPDATE "Sch-ema.x"."Ta.ble" SET id = 2;
DELETE FROM "Sch-ema.x"."Ta.ble";
UPDATE with_under_score.t_1 SET "_x" = 'y';
UPDATE "back\slash" SET id = 3;
UPDATE "UPPER" SET "V" = 'y';
UPDATE "日本" SET "名" = '名';
INSERT INTO "it's" VALUES (2);
