-- Functions that every other script uses: errors, LSNs, clocks, bytes.
CREATE SCHEMA ms;
CREATE SCHEMA cat;
CREATE SCHEMA sys;
CREATE SCHEMA infos;
CREATE SCHEMA u;
CREATE SCHEMA log;

-- An error with SQL Server's number and severity.
CREATE FUNCTION ms.fail(number int, severity int, message text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'MS000', MESSAGE = message, DETAIL = number || ',' || severity;
END $$;

-- Bytes.
CREATE FUNCTION ms.reversed(b bytea) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT coalesce(string_agg(substring(b, n, 1), ''::bytea ORDER BY n DESC), ''::bytea) FROM generate_series(1, length(b)) n
$$;
CREATE FUNCTION ms.bytes_to_int8(b bytea) RETURNS int8 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT ('x' || lpad(encode(right_bytes, 'hex'), 16, '0'))::bit(64)::int8
  FROM (SELECT CASE WHEN length(b) > 8 THEN substring(b, length(b) - 7) ELSE b END AS right_bytes) x
$$;
CREATE FUNCTION ms.pad_bytes(b bytea, size int) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT CASE WHEN length(b) < size THEN b || decode(repeat('00', size - length(b)), 'hex') ELSE b END
$$;
CREATE FUNCTION ms.pad_bytes_left(b bytea, size int) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT CASE WHEN length(b) < size THEN decode(repeat('00', size - length(b)), 'hex') || b
              ELSE substring(b, length(b) - size + 1) END
$$;
CREATE FUNCTION ms.pad_text(t text, size int) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT CASE WHEN length(t) < size THEN rpad(t, size) ELSE t END
$$;
-- Blanks beyond the end are cut off; other characters are left to the column's constraint.
CREATE FUNCTION ms.fit(t text, size int) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT CASE WHEN length(t) > size AND btrim(substring(t, size + 1)) = '' THEN left(t, size) ELSE t END
$$;
-- The length in UTF-16 code units.
CREATE FUNCTION ms.units(t text) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT CASE WHEN octet_length(t) = length(t) THEN length(t)
              ELSE length(t) + length(regexp_replace(t, '[\x01-\uffff\U0010f7ff-\U0010ffff]', '', 'g')) END
$$;

-- Log sequence numbers: made from a counter, ten bytes, growing.
CREATE FUNCTION ms.lsn(n int8) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT int4send((37 + (n >> 24))::int4) || int4send(((((n >> 4) & 1048575) + 1) * 8)::int4) || int2send(((n & 15) + 1)::int2)
$$;
CREATE FUNCTION ms.lsn_add(lsn bytea, step int) RETURNS bytea LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE carry int := step; place int := 9; digit int;
BEGIN
  WHILE carry <> 0 AND place >= 0 LOOP
    digit := get_byte(lsn, place) + carry;
    lsn := set_byte(lsn, place, digit & 255);
    carry := digit >> 8;
    place := place - 1;
  END LOOP;
  RETURN lsn;
END $$;

-- Clocks: UTC in 100 ns since 0001-01-01; the offset of the server's local time is a setting.
CREATE FUNCTION ms.offset_minutes() RETURNS int LANGUAGE sql STABLE AS $$
  SELECT coalesce(nullif(current_setting('ms.utc_offset', true), ''), '0')::int
$$;
CREATE FUNCTION ms.ticks(t timestamp) RETURNS int8 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT (t::date - DATE '0001-01-01')::int8 * 864000000000 + (extract(epoch FROM t::time) * 10000000)::int8
$$;
CREATE FUNCTION ms.utc_now() RETURNS int8 LANGUAGE sql VOLATILE AS $$
  SELECT ms.ticks(clock_timestamp() AT TIME ZONE 'UTC')
$$;
CREATE FUNCTION ms.local_now() RETURNS int8 LANGUAGE sql VOLATILE AS $$
  SELECT ms.utc_now() + ms.offset_minutes() * 600000000::int8
$$;
CREATE FUNCTION ms.local_ticks(t timestamptz) RETURNS int8 LANGUAGE sql STABLE STRICT AS $$
  SELECT ms.ticks(t AT TIME ZONE 'UTC') + ms.offset_minutes() * 600000000::int8
$$;
CREATE FUNCTION ms.timestamp(ticks int8) RETURNS timestamp LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT (DATE '0001-01-01' + (ticks / 864000000000)::int4)::timestamp + ((ticks % 864000000000) / 10) * INTERVAL '1 microsecond'
$$;
CREATE FUNCTION ms.datetime(ticks int8) RETURNS int8 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT (ticks / 864000000000) * 25920000 + ((ticks % 864000000000) * 3 + 50000) / 100000
$$;
CREATE FUNCTION ms.datetime_ticks(n int8) RETURNS int8 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT (n / 25920000) * 864000000000 + ((n % 25920000) * 100000 + 1) / 3
$$;
CREATE FUNCTION ms.rounded(ticks int8, scale int) RETURNS int8 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT CASE WHEN scale = 7 THEN ticks
              ELSE (ticks + (10 ^ (7 - scale))::int8 / 2) / (10 ^ (7 - scale))::int8 * (10 ^ (7 - scale))::int8 END
$$;

-- datetimeoffset: UTC ticks, then minutes + 32768.
CREATE FUNCTION ms.moment(utc int8, offset_minutes int) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT int8send(utc) || int2send((CASE WHEN offset_minutes < 0 THEN offset_minutes + 32768 ELSE offset_minutes - 32768 END)::int2)
$$;
CREATE FUNCTION ms.moment_utc(m bytea) RETURNS int8 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT ms.bytes_to_int8(substring(m, 1, 8))
$$;
CREATE FUNCTION ms.moment_offset(m bytea) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT get_byte(m, 8) * 256 + get_byte(m, 9) - 32768
$$;
CREATE FUNCTION ms.moment_local(m bytea) RETURNS int8 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT ms.moment_utc(m) + ms.moment_offset(m) * 600000000::int8
$$;
CREATE FUNCTION ms.moment_from_local(ticks int8, offset_minutes int) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT ms.moment(ticks - offset_minutes * 600000000::int8, offset_minutes)
$$;

-- uniqueidentifier: bytes in the order in which SQL Server compares them.
CREATE FUNCTION ms.guid(id uuid) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT substring(b, 11, 6) || substring(b, 9, 2) || substring(b, 8, 1) || substring(b, 7, 1) || substring(b, 6, 1)
      || substring(b, 5, 1) || substring(b, 4, 1) || substring(b, 3, 1) || substring(b, 2, 1) || substring(b, 1, 1)
  FROM (SELECT uuid_send(id) AS b) x
$$;
CREATE FUNCTION ms.guid_text(g bytea) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT upper(substring(h, 31, 2) || substring(h, 29, 2) || substring(h, 27, 2) || substring(h, 25, 2) || '-'
      || substring(h, 23, 2) || substring(h, 21, 2) || '-' || substring(h, 19, 2) || substring(h, 17, 2) || '-'
      || substring(h, 13, 4) || '-' || substring(h, 1, 12))
  FROM (SELECT encode(g, 'hex') AS h) x
$$;
-- The bytes as they are on the wire and in CAST(... AS binary(16)).
CREATE FUNCTION ms.guid_bytes(g bytea) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT substring(g, 13, 4) || substring(g, 11, 2) || substring(g, 9, 2) || substring(g, 7, 2) || substring(g, 1, 6)
$$;
CREATE FUNCTION ms.guid_from_bytes(b bytea) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT substring(p, 11, 6) || substring(p, 9, 2) || substring(p, 7, 2) || substring(p, 5, 2) || substring(p, 1, 4)
  FROM (SELECT ms.pad_bytes(substring(b, 1, 16), 16) AS p) x
$$;
