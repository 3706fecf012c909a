CREATE TABLE outbox (id uuid PRIMARY KEY, aggregatetype text NOT NULL, aggregateid text NOT NULL, kind text, payload jsonb, tenant text, at timestamp(3));
