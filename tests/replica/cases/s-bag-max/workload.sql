UPDATE dbo.bag SET n = 10 WHERE n = 1;
UPDATE dbo.bag SET n = 20 WHERE n = 2;
-- @wait
UPDATE dbo.bag SET wide = N'changed' WHERE n = 10;
UPDATE dbo.bag SET doc = NULL WHERE n = 20;
DELETE FROM dbo.bag WHERE n = 3;
UPDATE dbo.seldom SET doc = N'<b/>' WHERE n = 1;
UPDATE dbo.seldom SET n = 20 WHERE n = 2;
DELETE FROM dbo.seldom WHERE n = 3;
-- @wait
