INSERT INTO masked (id, truncated_bytes, truncated_decimal, truncated_json, truncated_time2) VALUES (2, '\x010203', 123.5, '{"a": 1}', '12:00');
UPDATE masked SET hashed_optional = NULL, truncated_optional = NULL WHERE id = 1;
DELETE FROM masked WHERE id = 1;
