INSERT INTO ancient SELECT 2, days, times, moments, one, moment, clock FROM ancient;
INSERT INTO ancient VALUES (3, NULL, '{infinity,-infinity,9999-12-31 23:59:59.999999}', '{infinity,-infinity}');
