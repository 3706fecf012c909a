-- @wait
INSERT INTO customers VALUES (60, 'first6', 'last6', 'mail60@acme.com');
