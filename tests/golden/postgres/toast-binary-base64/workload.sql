INSERT INTO large_binary VALUES (1, 1, decode(repeat('00ff', 2000), 'hex'), '\x01', ARRAY[decode(repeat('00ff', 2000), 'hex')]);
UPDATE large_binary SET small = 2;
INSERT INTO moved VALUES (1, decode(repeat('00ff', 2000), 'hex'));
UPDATE moved SET id = 2;
