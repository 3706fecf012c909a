INSERT INTO nullable VALUES (2, 'y'); INSERT INTO nullable VALUES (NULL, 'z'); UPDATE nullable SET b = 'w' WHERE b = 'z' ; UPDATE nullable SET a = 5 WHERE b IN ('w', 'y') AND a IS NULL; DELETE FROM nullable;

INSERT INTO partial VALUES (1, 'x'); INSERT INTO partial VALUES (2, 'y'); UPDATE partial SET b = 'w' WHERE a = 1 ; UPDATE partial SET a = a + 1; DELETE FROM partial;

INSERT INTO expr VALUES ('A', 'x'); INSERT INTO expr VALUES ('B', 'y'); UPDATE expr SET b = 'w' WHERE a = 'A' ; UPDATE expr SET a = 'C' WHERE a = 'A'; DELETE FROM expr;

INSERT INTO exprmix VALUES ('A', 'x', 1); INSERT INTO exprmix VALUES ('B', 'y', 2); UPDATE exprmix SET b = 'w' WHERE a = 'A' ; UPDATE exprmix SET c = 3 WHERE a = 'A'; DELETE FROM exprmix;

INSERT INTO exprfirst VALUES ('A', 'x', 1); INSERT INTO exprfirst VALUES ('B', 'y', 2); UPDATE exprfirst SET b = 'w' WHERE a = 'A' ; UPDATE exprfirst SET c = 3 WHERE a = 'A'; DELETE FROM exprfirst;

INSERT INTO two VALUES (1, 1, 'x'); INSERT INTO two VALUES (NULL, 2, 'y'); UPDATE two SET c = 'w' WHERE b = 2 ; UPDATE two SET a = 7 WHERE b = 2; DELETE FROM two;

INSERT INTO reversed VALUES (1, 1, 'x'); INSERT INTO reversed VALUES (NULL, 2, 'y'); UPDATE reversed SET c = 'w' WHERE b = 2 ; UPDATE reversed SET b = 7 WHERE b = 2; DELETE FROM reversed;

INSERT INTO pair VALUES (1, 1, 'x'); INSERT INTO pair VALUES (NULL, 2, 'y'); UPDATE pair SET c = 'w' WHERE b = 2 ; UPDATE pair SET a = 7 WHERE b = 2; DELETE FROM pair;

INSERT INTO incl VALUES (1, 1, 'x'); INSERT INTO incl VALUES (2, NULL, 'y'); UPDATE incl SET c = 'w' WHERE a = 2 ; UPDATE incl SET b = 7 WHERE a = 2; DELETE FROM incl;

INSERT INTO incltwo VALUES (1, 1, 'x'); INSERT INTO incltwo VALUES (2, 2, 'y'); UPDATE incltwo SET c = 'w' WHERE a = 2 ; UPDATE incltwo SET b = 7 WHERE a = 2; DELETE FROM incltwo;

INSERT INTO cons VALUES (1, 'x'); INSERT INTO cons VALUES (NULL, 'y'); UPDATE cons SET b = 'w' WHERE a = 1 ; UPDATE cons SET a = 7 WHERE a IS NULL; DELETE FROM cons;

INSERT INTO nnd VALUES (1, 'x'); INSERT INTO nnd VALUES (NULL, 'y'); UPDATE nnd SET b = 'w' WHERE a = 1 ; UPDATE nnd SET a = 7 WHERE a IS NULL; DELETE FROM nnd;

INSERT INTO deferred VALUES (1, 'x'); INSERT INTO deferred VALUES (2, 'y'); UPDATE deferred SET b = 'w' WHERE a = 1 ; UPDATE deferred SET a = 7 WHERE a = 2; DELETE FROM deferred;

INSERT INTO plain VALUES (1, 'x'); INSERT INTO plain VALUES (2, 'y'); UPDATE plain SET b = 'w' WHERE a = 1 ; UPDATE plain SET a = 7 WHERE a = 2; DELETE FROM plain;

INSERT INTO withpk VALUES (1, 1, 'x'); INSERT INTO withpk VALUES (2, NULL, 'y'); UPDATE withpk SET b = 'w' WHERE a = 1 ; UPDATE withpk SET a = 7 WHERE a = 1; DELETE FROM withpk;

INSERT INTO replident VALUES (1, 1, 'x'); INSERT INTO replident VALUES (2, 2, 'y'); UPDATE replident SET c = 'w' WHERE a = 1 ; UPDATE replident SET b = 7 WHERE a = 1; DELETE FROM replident;

INSERT INTO "Caps" VALUES (1, 'x'); INSERT INTO "Caps" VALUES (2, 'y'); UPDATE "Caps" SET "C" = 'w' WHERE "A b" = 1 ; UPDATE "Caps" SET "A b" = 7 WHERE "A b" = 2; DELETE FROM "Caps";

INSERT INTO collat VALUES ('a', 'x'); INSERT INTO collat VALUES (NULL, 'y'); UPDATE collat SET b = 'w' WHERE a = 'a' ; UPDATE collat SET a = 'q' WHERE a IS NULL; DELETE FROM collat;

INSERT INTO parted VALUES (1, 1, 'x'); INSERT INTO parted VALUES (2, NULL, 'y'); UPDATE parted SET c = 'w' WHERE a = 1 ; UPDATE parted SET b = 7 WHERE a = 2; DELETE FROM parted;
INSERT INTO clustered VALUES (1, 2);
