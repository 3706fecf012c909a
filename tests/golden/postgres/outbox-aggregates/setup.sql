CREATE TABLE outbox (id uuid PRIMARY KEY, aggregatetype varchar(50) NOT NULL, aggregateid varchar(50) NOT NULL, type varchar(50) NOT NULL, payload jsonb, ver int);
