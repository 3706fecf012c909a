INSERT INTO "Ördér-lines" ("line no") VALUES (2);
UPDATE "Ördér-lines" SET "1st" = NULL WHERE "line no" = 1;
UPDATE "Ördér-lines" SET "line no" = 9 WHERE "line no" = 1;
DELETE FROM "Ördér-lines";
