-- A schema after Pagila: domains, enums, arrays, tsvector, triggers, partitions, views, sequences, cascades.
-- @property snapshot.mode=initial

CREATE TYPE mpaa_rating AS ENUM ('G', 'PG', 'PG-13', 'R', 'NC-17');
CREATE DOMAIN year AS integer CONSTRAINT year_check CHECK (VALUE >= 1901 AND VALUE <= 2155);
CREATE DOMAIN bigserial_id AS bigint NOT NULL;
CREATE SEQUENCE film_film_id_seq;
CREATE FUNCTION last_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.last_update = '2024-05-06 07:08:09.123456+00'; RETURN NEW; END $$;
CREATE FUNCTION film_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.fulltext = to_tsvector('simple', coalesce(NEW.title, '') || ' ' || coalesce(NEW.description, '')); RETURN NEW; END $$;
CREATE TABLE language (language_id serial PRIMARY KEY, name character(20) NOT NULL,
  last_update timestamp with time zone NOT NULL DEFAULT now());
CREATE TABLE film (
  film_id integer DEFAULT nextval('film_film_id_seq'::regclass) NOT NULL PRIMARY KEY,
  title text NOT NULL, description text, release_year year,
  language_id integer NOT NULL REFERENCES language ON UPDATE CASCADE,
  original_language_id integer REFERENCES language,
  rental_duration smallint DEFAULT 3 NOT NULL, rental_rate numeric(4,2) DEFAULT 4.99 NOT NULL, length smallint,
  replacement_cost numeric(5,2) DEFAULT 19.99 NOT NULL, rating mpaa_rating DEFAULT 'G'::mpaa_rating,
  last_update timestamp with time zone DEFAULT now() NOT NULL, special_features text[], fulltext tsvector NOT NULL);
CREATE TRIGGER film_fulltext BEFORE INSERT OR UPDATE ON film FOR EACH ROW EXECUTE FUNCTION film_text();
CREATE TRIGGER last_updated BEFORE UPDATE ON film FOR EACH ROW EXECUTE FUNCTION last_updated();
CREATE TABLE actor (actor_id serial PRIMARY KEY, first_name text NOT NULL, last_name text NOT NULL,
  last_update timestamptz DEFAULT now() NOT NULL);
CREATE INDEX ON actor (last_name);
CREATE TABLE film_actor (actor_id integer NOT NULL REFERENCES actor ON DELETE CASCADE,
  film_id integer NOT NULL REFERENCES film ON DELETE CASCADE, last_update timestamptz NOT NULL,
  PRIMARY KEY (actor_id, film_id));
CREATE TABLE staff (staff_id serial PRIMARY KEY, username varchar(16) NOT NULL, active boolean DEFAULT true NOT NULL,
  password text, picture bytea, store_id bigserial_id);
CREATE TABLE payment (payment_id integer NOT NULL, customer_id integer NOT NULL, amount numeric(5,2) NOT NULL,
  payment_date timestamp with time zone NOT NULL, PRIMARY KEY (payment_date, payment_id)) PARTITION BY RANGE (payment_date);
CREATE TABLE payment_p2022_01 PARTITION OF payment FOR VALUES FROM ('2022-01-01 00:00:00+00') TO ('2022-02-01 00:00:00+00');
CREATE TABLE payment_p2022_02 (payment_id integer NOT NULL, customer_id integer NOT NULL, amount numeric(5,2) NOT NULL,
  payment_date timestamp with time zone NOT NULL);
ALTER TABLE payment ATTACH PARTITION payment_p2022_02 FOR VALUES FROM ('2022-02-01 00:00:00+00') TO ('2022-03-01 00:00:00+00');
CREATE VIEW actor_info AS SELECT a.actor_id, count(*) AS films FROM actor a JOIN film_actor USING (actor_id) GROUP BY 1;
CREATE MATERIALIZED VIEW rental_by_category AS SELECT customer_id, sum(amount) AS total FROM payment GROUP BY 1;
CREATE UNIQUE INDEX ON rental_by_category (customer_id);
INSERT INTO language (name, last_update) VALUES ('English', '2022-02-15 10:02:19+00'), ('Italian', '2022-02-15 10:02:19+00');
INSERT INTO film (title, description, release_year, language_id, length, rating, last_update, special_features) VALUES
 ('ACADEMY DINOSAUR', 'A Epic Drama of a Feminist', 2012, 1, 86, 'PG', '2022-09-10 16:46:03.905795+00', '{"Deleted Scenes","Behind the Scenes"}'),
 ('ACE GOLDFINGER', NULL, NULL, 1, NULL, NULL, '2022-09-10 16:46:03+00', NULL);
INSERT INTO actor (first_name, last_name, last_update) VALUES ('PENELOPE', 'GUINESS', '2022-02-15 09:34:33+00'), ('NICK', 'WAHLBERG', '2022-02-15 09:34:33.5+00');
INSERT INTO film_actor VALUES (1, 1, '2022-02-15 10:05:03+00'), (1, 2, '2022-02-15 10:05:03+00'), (2, 1, '2022-02-15 10:05:03+00');
INSERT INTO staff (username, password, picture, store_id) VALUES ('Mike', '8cb2237d0679ca88db6464eac60da96345513964', '\x89504e470d0a5a0a', 1);
INSERT INTO payment VALUES (1, 1, 5.99, '2022-01-25 14:22:31.327+00'), (2, 1, 0.99, '2022-02-15 18:42:31+00');
-- @run
INSERT INTO film (film_id, title, language_id, last_update) VALUES (10, 'ADAPTATION HOLES', 2, '2022-09-11 16:46:03+00');
UPDATE film SET rental_rate = 2.99, special_features = array_append(special_features, 'Trailers');
DELETE FROM actor WHERE actor_id = 2;
DELETE FROM film WHERE film_id = 1;
UPDATE language SET language_id = 20 WHERE language_id = 2;
INSERT INTO payment VALUES (3, 2, 7.50, '2022-01-02 00:00:00+00'), (4, 2, 1.00, '2022-02-02 00:00:00+00');
UPDATE payment SET payment_date = '2022-02-25 14:22:31+00' WHERE payment_id = 1;
UPDATE payment SET amount = amount + 1;
REFRESH MATERIALIZED VIEW rental_by_category;
REFRESH MATERIALIZED VIEW CONCURRENTLY rental_by_category;
DELETE FROM payment WHERE payment_id = 3;
-- @wait
CREATE TABLE payment_p2022_03 PARTITION OF payment FOR VALUES FROM ('2022-03-01 00:00:00+00') TO ('2022-04-01 00:00:00+00');
INSERT INTO payment VALUES (5, 2, 7.50, '2022-03-02 00:00:00+00');
ALTER TABLE payment DETACH PARTITION payment_p2022_01;
UPDATE payment_p2022_01 SET amount = 1;
INSERT INTO payment_p2022_01 VALUES (9, 2, 7.50, '2022-03-02 00:00:00+00');
DELETE FROM staff;
ALTER TYPE mpaa_rating ADD VALUE 'X' BEFORE 'R';
ALTER TABLE film ADD COLUMN revenue_projection numeric(10,2) GENERATED ALWAYS AS (rental_duration * rental_rate) STORED;
UPDATE film SET rating = 'X' WHERE film_id = 10;
TRUNCATE film CASCADE;
