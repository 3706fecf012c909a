CREATE TABLE masked (id INT PRIMARY KEY, truncated VARCHAR(20) NOT NULL DEFAULT 'abcdefgh', hashed VARCHAR(20) NOT NULL DEFAULT 'abcdefgh',
  starred VARCHAR(20) NOT NULL DEFAULT 'abcdefgh', truncated_time TIME NOT NULL DEFAULT '12:00', truncated_bytes BYTEA NOT NULL,
  truncated_optional VARCHAR(20) DEFAULT 'abcdefgh', hashed_optional VARCHAR(20) DEFAULT 'abcdefgh', truncated_decimal NUMERIC(10, 4) NOT NULL, truncated_decimal2 NUMERIC(10, 4) NOT NULL DEFAULT 12.5, truncated_json JSON NOT NULL, truncated_time2 TIME NOT NULL);
INSERT INTO masked (id, truncated_bytes, truncated_decimal, truncated_json, truncated_time2) VALUES (1, '\x010203', 123.5, '{"a": 1}', '12:00');
