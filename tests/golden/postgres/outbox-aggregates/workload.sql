INSERT INTO outbox VALUES ('00000000-0000-0000-0000-000000000001','order','1','orderCreated','{"n": 1}',2);
INSERT INTO outbox VALUES ('00000000-0000-0000-0000-000000000002','customer','2','customerCreated','{"n": 2}',1);
INSERT INTO outbox VALUES ('00000000-0000-0000-0000-000000000003','order','3','orderCreated','{"n": 3, "m": "x"}',2);
INSERT INTO outbox VALUES ('00000000-0000-0000-0000-000000000004','customer','4','customerCreated','{"n": 4, "m": "y"}',1);
INSERT INTO outbox VALUES ('00000000-0000-0000-0000-000000000005','order','5','orderCreated','{"n": 5}',2);
