INSERT INTO "1 Schöma"."my-table.x" VALUES (2, 'v', DEFAULT, NULL, NULL, NULL);
UPDATE "1 Schöma"."my-table.x" SET "1st" = 3 WHERE "1st" = 2;
DELETE FROM "1 Schöma"."my-table.x" WHERE "1st" = 3;
INSERT INTO "ABC" VALUES (1, 2, 3);
INSERT INTO "no key" VALUES ('x'), (NULL);
