UPDATE dbo.bag SET n = 10 WHERE n = 1;
UPDATE dbo.bag SET n = 20 WHERE n = 2;
-- @wait
DELETE FROM dbo.bag WHERE n = 3;
-- @wait
