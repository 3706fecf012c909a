-- The outbox, with JSON that is expanded.
-- @property include.schema.changes=false
-- @property transforms=outbox
-- @property transforms.outbox.type=io.debezium.transforms.outbox.EventRouter
-- @property transforms.outbox.table.expand.json.payload=true
-- @property transforms.outbox.table.fields.additional.placement=type:header:eventType,n:envelope
-- @property table.include.list=dbo.outbox
CREATE TABLE outbox (id UNIQUEIDENTIFIER NOT NULL PRIMARY KEY, aggregatetype VARCHAR(40) NOT NULL, aggregateid VARCHAR(40) NOT NULL, type VARCHAR(40), payload NVARCHAR(MAX), n INT);
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'outbox', @role_name = NULL, @supports_net_changes = 0;
-- @run
INSERT INTO outbox VALUES ('6F9619FF-8B86-D011-B42D-00C04FC964FF', 'Order', '1', 'Created', N'{"a": 1, "b": ["x", "y"], "c": {"d": null, "e": 1.5}}', 1);
INSERT INTO outbox VALUES ('6F9619FF-8B86-D011-B42D-00C04FC96400', 'Order', '2', NULL, NULL, NULL);
INSERT INTO outbox VALUES ('6F9619FF-8B86-D011-B42D-00C04FC96401', 'Cust omer', '2', 'Text', N'no json', 2);
DELETE FROM outbox;
