-- Conversions between text and other types, with SQL Server's formats and errors.

CREATE FUNCTION ms.text_to_int8(t text, declared text) RETURNS int8 LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
  IF t ~ '^\s*[+-]?\s*\d+\s*$' THEN
    RETURN replace(t, ' ', '')::int8;
  ELSIF trim(t) = '' THEN
    RETURN 0;
  END IF;
  PERFORM ms.fail(245, 16, 'Conversion failed when converting the varchar value ''' || t || ''' to data type ' || declared || '.');
END $$;
CREATE FUNCTION ms.text_to_bit(t text) RETURNS int2 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT CASE lower(trim(t)) WHEN 'true' THEN 1 WHEN 'false' THEN 0
              ELSE (ms.text_to_int8(t, 'bit') <> 0)::int END::int2
$$;
CREATE FUNCTION ms.text_to_numeric(t text, declared text) RETURNS numeric LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
  IF t ~ '^\s*[+-]?(\d+\.?\d*|\.\d+)\s*$' THEN
    RETURN trim(t)::numeric;
  END IF;
  PERFORM ms.fail(8114, 16, 'Error converting data type varchar to ' || declared || '.');
END $$;
CREATE FUNCTION ms.text_to_money(t text) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT CASE WHEN trim(t) = '' THEN 0 ELSE round(ms.text_to_numeric(regexp_replace(t, '[$,]', '', 'g'), 'money'), 4) END
$$;
CREATE FUNCTION ms.text_to_float(t text) RETURNS float8 LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
  IF t ~* '^\s*[+-]?(\d+\.?\d*|\.\d+)([ed][+-]?\d+)?\s*$' THEN
    RETURN replace(lower(trim(t)), 'd', 'e')::float8;
  ELSIF trim(t) = '' THEN
    RETURN 0;
  END IF;
  PERFORM ms.fail(8114, 16, 'Error converting data type varchar to float.');
END $$;
CREATE FUNCTION ms.text_to_guid(t text) RETURNS bytea LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
  IF t ~* '^\{?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\}?' THEN
    RETURN ms.guid(left(ltrim(t, '{'), 36)::uuid);
  END IF;
  PERFORM ms.fail(8169, 16, 'Conversion failed when converting from a character string to uniqueidentifier.');
END $$;
CREATE FUNCTION ms.hex_to_bytes(t text) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT decode(regexp_replace(t, '^0[xX]', ''), 'hex')
$$;

-- Floats as CAST writes them: six digits.
CREATE FUNCTION ms.float_text(v float8) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE exponent int; rounded numeric;
BEGIN
  IF v = 0 THEN RETURN '0'; END IF;
  exponent := floor(log(abs(v)::numeric));
  rounded := round(v::numeric, 5 - exponent);
  exponent := floor(log(abs(rounded)));
  IF exponent BETWEEN -4 AND 5 THEN RETURN trim_scale(rounded)::text; END IF;
  RETURN trim_scale(rounded / 10::numeric ^ exponent)::text || 'e' || CASE WHEN exponent < 0 THEN '-' ELSE '+' END
      || lpad(abs(exponent)::text, 3, '0');
END $$;

-- Dates and times: a text becomes days since 0001-01-01, 100 ns since midnight, minutes of offset (null without one).
CREATE FUNCTION ms.parse_time(t text) RETURNS int8 LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE p text[]; hour int;
BEGIN
  p := regexp_match(t, '^\s*(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:[.:](\d{1,9}))?)?)?\s*([AaPp][Mm])?\s*$');
  IF p IS NULL OR (p[2] IS NULL AND p[5] IS NULL) THEN RETURN -1; END IF;
  hour := p[1]::int;
  IF p[5] IS NOT NULL THEN
    IF hour NOT BETWEEN 1 AND 12 THEN RETURN -1; END IF;
    hour := hour % 12 + CASE WHEN lower(p[5]) = 'pm' THEN 12 ELSE 0 END;
  END IF;
  IF hour > 23 OR coalesce(p[2], '0')::int > 59 OR coalesce(p[3], '0')::int > 59 THEN RETURN -1; END IF;
  RETURN ((hour * 60 + coalesce(p[2], '0')::int) * 60 + coalesce(p[3], '0')::int) * 10000000::int8
      + round(rpad(coalesce(p[4], '0'), 9, '0')::numeric / 100)::int8;
END $$;

CREATE FUNCTION ms.parse_date(t text) RETURNS int4 LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE p text[];
BEGIN
  CASE
    WHEN t ~ '^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}$' THEN p := regexp_match(t, '^(\d+).(\d+).(\d+)$');
    WHEN t ~ '^\d{8}$' THEN p := ARRAY[left(t, 4), substring(t, 5, 2), right(t, 2)];
    WHEN t ~ '^\d{6}$' THEN
      p := ARRAY[(CASE WHEN left(t, 2)::int < 50 THEN 2000 ELSE 1900 END + left(t, 2)::int)::text, substring(t, 3, 2), right(t, 2)];
    WHEN t ~ '^\d{1,2}[-/.]\d{1,2}[-/.]\d{4}$' THEN
      p := regexp_match(t, '^(\d+).(\d+).(\d+)$');
      p := ARRAY[p[3], p[1], p[2]];
    WHEN t ~ '^\d{4}$' THEN p := ARRAY[t, '1', '1'];
    ELSE RETURN (to_date(t, CASE WHEN t ~ '^\d{1,2} [A-Za-z]' THEN 'DD Mon YYYY' WHEN t ~ ',' THEN 'Mon DD, YYYY' ELSE 'Mon DD YYYY' END)
                 - DATE '0001-01-01');
  END CASE;
  RETURN make_date(p[1]::int, p[2]::int, p[3]::int) - DATE '0001-01-01';
EXCEPTION WHEN data_exception THEN RETURN -1;
END $$;

CREATE FUNCTION ms.parse_moment(t text) RETURNS int8[] LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE rest text := trim(t); p text[]; days int := 693595; ticks int8 := 0; minutes int;
BEGIN
  IF rest = '' THEN RETURN ARRAY[days, 0, NULL]; END IF;
  p := regexp_match(rest, '^(.*:\d\d(?:\.\d+)?)\s*(?:(Z)|([+-])(\d\d):?(\d\d))$');
  IF p IS NOT NULL THEN
    rest := p[1];
    minutes := CASE WHEN p[2] IS NULL THEN (p[4]::int * 60 + p[5]::int) * CASE p[3] WHEN '-' THEN -1 ELSE 1 END ELSE 0 END;
    IF abs(minutes) > 840 THEN RETURN NULL; END IF;
  END IF;
  p := regexp_match(rest, '^(\d{4}-\d\d-\d\d)T(\d.*)$');
  IF p IS NULL THEN p := regexp_match(rest, '^(.*\S)\s+(\d{1,2}:\S*(?:\s*[AaPp][Mm])?|\d{1,2}\s*[AaPp][Mm])$'); END IF;
  IF p IS NOT NULL THEN
    days := ms.parse_date(p[1]);
    ticks := ms.parse_time(p[2]);
  ELSIF rest ~ ':' OR rest ~* '^\d{1,2}\s*[ap]m$' THEN
    ticks := ms.parse_time(rest);
  ELSE
    days := ms.parse_date(rest);
  END IF;
  IF days < 0 OR ticks < 0 THEN RETURN NULL; END IF;
  RETURN ARRAY[days, ticks, minutes];
END $$;
CREATE FUNCTION ms.moment_parts(t text) RETURNS int8[] LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE parts int8[] := ms.parse_moment(t);
BEGIN
  IF parts IS NULL THEN
    PERFORM ms.fail(241, 16, 'Conversion failed when converting date and/or time from character string.');
  END IF;
  RETURN parts;
END $$;
CREATE FUNCTION ms.text_to_date(t text) RETURNS int4 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT (ms.moment_parts(t))[1]::int4
$$;
CREATE FUNCTION ms.text_to_time(t text, scale int) RETURNS int8 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT ms.rounded((ms.moment_parts(t))[2], scale) % 864000000000
$$;
CREATE FUNCTION ms.text_to_datetime2(t text, scale int) RETURNS int8 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT ms.rounded(p[1] * 864000000000 + p[2], scale) FROM (SELECT ms.moment_parts(t) AS p) x
$$;
CREATE FUNCTION ms.in_datetime_range(n int8) RETURNS int8 LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
  IF n NOT BETWEEN 639905 * 25920000::int8 AND 3652059 * 25920000::int8 - 1 THEN
    PERFORM ms.fail(242, 16, 'The conversion of a varchar data type to a datetime data type resulted in an out-of-range value.');
  END IF;
  RETURN n;
END $$;
CREATE FUNCTION ms.in_smalldatetime_range(n int8) RETURNS int8 LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
  IF n NOT BETWEEN 693595 * 1440::int8 AND 759131 * 1440::int8 - 1 THEN
    PERFORM ms.fail(242, 16, 'The conversion of a varchar data type to a smalldatetime data type resulted in an out-of-range value.');
  END IF;
  RETURN n;
END $$;
CREATE FUNCTION ms.text_to_datetime(t text) RETURNS int8 LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE p int8[] := ms.parse_moment(t);
BEGIN
  IF p IS NULL OR t ~ '[.]\d{4,}' OR p[3] IS NOT NULL AND t !~ 'Z' THEN
    PERFORM ms.fail(241, 16, 'Conversion failed when converting date and/or time from character string.');
  END IF;
  RETURN ms.in_datetime_range(ms.datetime(p[1] * 864000000000 + p[2]));
END $$;
CREATE FUNCTION ms.text_to_smalldatetime(t text) RETURNS int8 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT ms.in_smalldatetime_range((p[1] * 864000000000 + p[2] + 300010000) / 600000000) FROM (SELECT ms.moment_parts(t) AS p) x
$$;
CREATE FUNCTION ms.text_to_moment(t text, scale int) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT ms.moment_from_local(ms.rounded(p[1] * 864000000000 + p[2], scale), coalesce(p[3], 0)::int)
  FROM (SELECT ms.moment_parts(t) AS p) x
$$;

-- Dates and times as text.
CREATE FUNCTION ms.date_text(days int) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT to_char(DATE '0001-01-01' + days, 'YYYY-MM-DD')
$$;
CREATE FUNCTION ms.fraction_text(ticks int8, scale int) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT CASE WHEN scale = 0 THEN '' ELSE '.' || left(lpad((ticks % 10000000)::text, 7, '0'), scale) END
$$;
CREATE FUNCTION ms.time_text(ticks int8, scale int) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT lpad((ticks / 36000000000)::text, 2, '0') || ':' || lpad((ticks / 600000000 % 60)::text, 2, '0') || ':'
      || lpad((ticks / 10000000 % 60)::text, 2, '0') || ms.fraction_text(ticks, scale)
$$;
CREATE FUNCTION ms.datetime2_text(ticks int8, scale int) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT ms.date_text((ticks / 864000000000)::int) || ' ' || ms.time_text(ticks % 864000000000, scale)
$$;
CREATE FUNCTION ms.offset_text(minutes int) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT CASE WHEN minutes < 0 THEN '-' ELSE '+' END || lpad((abs(minutes) / 60)::text, 2, '0') || ':' || lpad((abs(minutes) % 60)::text, 2, '0')
$$;
CREATE FUNCTION ms.moment_text(m bytea, scale int) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT ms.datetime2_text(ms.moment_local(m), scale) || ' ' || ms.offset_text(ms.moment_offset(m))
$$;
-- A point in time in one of CONVERT's styles; digits is how many fractional digits the type has.
CREATE FUNCTION ms.styled(ticks int8, style int, digits int) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT CASE style
    WHEN 1 THEN to_char(t, 'MM/DD/YY') WHEN 101 THEN to_char(t, 'MM/DD/YYYY')
    WHEN 2 THEN to_char(t, 'YY.MM.DD') WHEN 102 THEN to_char(t, 'YYYY.MM.DD')
    WHEN 3 THEN to_char(t, 'DD/MM/YY') WHEN 103 THEN to_char(t, 'DD/MM/YYYY')
    WHEN 4 THEN to_char(t, 'DD.MM.YY') WHEN 104 THEN to_char(t, 'DD.MM.YYYY')
    WHEN 5 THEN to_char(t, 'DD-MM-YY') WHEN 105 THEN to_char(t, 'DD-MM-YYYY')
    WHEN 106 THEN to_char(t, 'DD Mon YYYY') WHEN 107 THEN to_char(t, 'Mon DD, YYYY')
    WHEN 8 THEN to_char(t, 'HH24:MI:SS') WHEN 108 THEN to_char(t, 'HH24:MI:SS')
    WHEN 110 THEN to_char(t, 'MM-DD-YYYY') WHEN 111 THEN to_char(t, 'YYYY/MM/DD') WHEN 112 THEN to_char(t, 'YYYYMMDD')
    WHEN 12 THEN to_char(t, 'YYMMDD') WHEN 23 THEN to_char(t, 'YYYY-MM-DD')
    WHEN 14 THEN to_char(t, 'HH24:MI:SS') || ':' || substring(ms.fraction_text(ticks, 3), 2)
    WHEN 114 THEN to_char(t, 'HH24:MI:SS') || ':' || substring(ms.fraction_text(ticks, 3), 2)
    WHEN 20 THEN to_char(t, 'YYYY-MM-DD HH24:MI:SS') WHEN 120 THEN to_char(t, 'YYYY-MM-DD HH24:MI:SS')
    WHEN 21 THEN to_char(t, 'YYYY-MM-DD HH24:MI:SS') || ms.fraction_text(ticks, digits)
    WHEN 25 THEN to_char(t, 'YYYY-MM-DD HH24:MI:SS') || ms.fraction_text(ticks, digits)
    WHEN 121 THEN to_char(t, 'YYYY-MM-DD HH24:MI:SS') || ms.fraction_text(ticks, digits)
    WHEN 126 THEN to_char(t, 'YYYY-MM-DD"T"HH24:MI:SS')
      || CASE WHEN ticks % 10000000 = 0 AND digits = 3 THEN '' ELSE ms.fraction_text(ticks, digits) END
    WHEN 127 THEN to_char(t, 'YYYY-MM-DD"T"HH24:MI:SS')
      || CASE WHEN ticks % 10000000 = 0 AND digits = 3 THEN '' ELSE ms.fraction_text(ticks, digits) END || 'Z'
    WHEN 9 THEN to_char(t, 'Mon FMDD YYYY FMHH12:MI:SS') || ':' || substring(ms.fraction_text(ticks, 3), 2) || to_char(t, 'AM')
    WHEN 109 THEN to_char(t, 'Mon FMDD YYYY FMHH12:MI:SS') || ':' || substring(ms.fraction_text(ticks, 3), 2) || to_char(t, 'AM')
    ELSE to_char(t, 'Mon ') || lpad(to_char(t, 'FMDD'), 2) || to_char(t, ' YYYY ') || lpad(to_char(t, 'FMHH12'), 2) || to_char(t, ':MIAM')
  END FROM (SELECT ms.timestamp(ticks) AS t) x
$$;
-- The millisecond that a datetime shows: thirds are rounded to 0, 3 and 7.
CREATE FUNCTION ms.datetime_shown(n int8) RETURNS int8 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT (n / 25920000) * 864000000000 + (((n % 25920000) * 10 + 1) / 3) * 10000
$$;

-- Numbers and bytes.
CREATE FUNCTION ms.tinyint(n int4) RETURNS int2 LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
  IF n NOT BETWEEN 0 AND 255 THEN
    PERFORM ms.fail(220, 16, 'Arithmetic overflow error for data type tinyint, value = ' || n || '.');
  END IF;
  RETURN n::int2;
END $$;
CREATE FUNCTION ms.bytes_to_int(b bytea) RETURNS int4 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT ('x' || lpad(encode(substring(b, greatest(length(b) - 3, 1)), 'hex'), 8, '0'))::bit(32)::int4
$$;
CREATE FUNCTION ms.bytes_text(b bytea) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT coalesce(string_agg(CASE get_byte(b, n) WHEN 0 THEN U&'\+10F7FF' ELSE chr(get_byte(b, n)) END, '' ORDER BY n), '')
  FROM generate_series(0, length(b) - 1) n
$$;
CREATE FUNCTION ms.narrow_bytes(t text) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT convert_to(ms.narrow_cp1252(t), 'WIN1252')
$$;
CREATE FUNCTION ms.wide_bytes(t text) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$
  -- Stand-ins of NUL and of lone surrogates become what they stand for.
  SELECT coalesce(string_agg(
    CASE WHEN code < 65536 THEN ms.reversed(int2send((CASE WHEN code > 32767 THEN code - 65536 ELSE code END)::int2))
         ELSE ms.reversed(int2send((55296 + ((code - 65536) >> 10) - 65536)::int2))
           || ms.reversed(int2send((56320 + ((code - 65536) & 1023) - 65536)::int2)) END, ''::bytea ORDER BY n), ''::bytea)
  FROM (SELECT n, CASE WHEN c = 1112063 THEN 0 WHEN c > 1112063 THEN c - 1112064 + 55296 ELSE c END AS code
        FROM (SELECT n, ascii(substring(t, n, 1)) AS c FROM generate_series(1, length(t)) n) y) x
$$;
-- XML is stored without its declaration.
CREATE FUNCTION ms.xml(t text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT regexp_replace(regexp_replace(t, '^\s*<\?xml[^>]*\?>\s*', ''), '<([^<>/?!\s][^<>]*[^/<>]|[^<>/?!\s])></[^<>]+>', '<\1/>', 'g')
$$;
CREATE FUNCTION ms.clr_text(kind text, b bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
  PERFORM ms.fail(40000, 16, 'The SQL Server test double does not write ' || kind || ' values as text.');
END $$;
