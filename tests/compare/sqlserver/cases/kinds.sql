-- One column of each type as text: defaults, values to the last digit, untouched large values, a placeholder that begins with hex:.
-- @property time.precision.mode=isostring
-- @property decimal.handling.mode=string
-- @property binary.handling.mode=hex
-- @property include.schema.changes=true
-- @property column.propagate.source.type=.*
-- @property unavailable.value.placeholder=hex:2a2a
CREATE TABLE k (id INT NOT NULL PRIMARY KEY, t0 TIME(0) NOT NULL, t7 TIME(7), d DATE, dt DATETIME, sd SMALLDATETIME, d2 DATETIME2(7), d3 DATETIME2(3) NOT NULL DEFAULT '2020-01-02 03:04:05.678', o DATETIMEOFFSET(7), o0 DATETIMEOFFSET(0) DEFAULT '2019-01-01 00:00:00+02:00', m MONEY, sm SMALLMONEY DEFAULT 1, n NUMERIC(20,0), f FLOAT, r REAL DEFAULT 1.5, b BIT NOT NULL DEFAULT 1, x XML, tx TEXT NOT NULL, im IMAGE, vm VARCHAR(MAX) NOT NULL, nm NVARCHAR(MAX), vb VARBINARY(MAX), bi BINARY(3) DEFAULT 0x01, c CHAR(3) DEFAULT 'a', g UNIQUEIDENTIFIER, ti TINYINT DEFAULT 255);
INSERT INTO k VALUES (1, '10:11:12', '10:11:12.1234567', '0001-01-01', '2000-01-02 03:04:05.997', '2000-01-02 03:04', '2000-01-02 03:04:05.1234567', '2000-01-02 03:04:05.120', '2000-01-02 03:04:05.1234560 -05:30', '2000-01-02 03:04:05 +00:00', 1.5, -2.25, 99999999999999999999, 1e100, 1.25, 0, '<a>b</a>', 'text', 0x0102, 'vm', N'nm', 0x03, 0x010203, 'ab', '6F9619FF-8B86-D011-B42D-00C04FC964FF', 7);
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @role_name = NULL, @supports_net_changes = 0, @source_name =  N'k';
-- @run
INSERT INTO k (id, t0, tx, vm) VALUES (2, '00:00:00', '', '');
UPDATE k SET ti = 9;
UPDATE k SET vm = 'other', tx = 'other' WHERE id = 1;
DELETE FROM k WHERE id = 1;
