INSERT INTO outbox VALUES ('6f5e6a9a-3c1a-4a9e-8f58-8f0f6a2f4b1e', 'order', '7', 'created', '{"id": 7, "lines": [{"sku": "a", "n": 1.5}], "ok": true, "none": null}', 't1', '2020-01-01 00:00:00.5');
INSERT INTO outbox VALUES ('6f5e6a9a-3c1a-4a9e-8f58-8f0f6a2f4b1f', 'order', '8', NULL, '{"id": 8, "lines": [], "ok": false}', NULL, '2020-01-01');
INSERT INTO outbox VALUES ('6f5e6a9a-3c1a-4a9e-8f58-8f0f6a2f4b20', 'user', 'é', 'gone', NULL, NULL, '2020-01-02');
DELETE FROM outbox;
