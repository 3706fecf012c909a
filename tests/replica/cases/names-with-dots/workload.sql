UPDATE "a.b".c SET v='a1';
UPDATE a."b.c" SET v='a2';
UPDATE a.t SET v='a3';
UPDATE "A".t SET v='a4';
UPDATE a."T" SET v='a5';
UPDATE a."x/y" SET v='a6';
UPDATE a.x_y SET v='a7';
UPDATE a."x%2Fy" SET v='a8';
UPDATE a."ä ö" SET v='a9';
-- @wait
