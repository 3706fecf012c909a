CREATE SCHEMA "1 Schöma";
CREATE TABLE "1 Schöma"."my-table.x" ("1st" int, "größe" text, "a b" text NOT NULL DEFAULT 'x', "$d" int, "日本" int, "_ok" int, PRIMARY KEY ("1st", "größe"));
CREATE TABLE "ABC" ("Id" int PRIMARY KEY, "a.b" int, "Ab" int);
CREATE TABLE "no key" ("v v" text);
INSERT INTO "1 Schöma"."my-table.x" VALUES (1, 'ü', 'y', 1, 2, 3);
