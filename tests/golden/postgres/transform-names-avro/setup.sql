CREATE TABLE "Ördér-lines" ("line no" int PRIMARY KEY, "1st" text DEFAULT 'd', "a.b" int, "naïve" text);
INSERT INTO "Ördér-lines" VALUES (1,'a',1,'n');
