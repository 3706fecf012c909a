-- Functions behind T-SQL's built-in ones.

-- A conversion that yields null where it fails.
CREATE FUNCTION ms.tried(query text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE result text;
BEGIN
  EXECUTE query INTO result;
  RETURN result;
EXCEPTION WHEN OTHERS THEN RETURN NULL;
END $$;

-- Texts.
CREATE FUNCTION ms.charindex(wanted text, t text, start int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT CASE WHEN wanted = '' THEN 0 ELSE coalesce(nullif(position(wanted IN substring(t, greatest(start, 1))), 0) + greatest(start, 1) - 1, 0) END
$$;
CREATE FUNCTION ms.replace_ignoring_case(t text, old text, new text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE result text := ''; place int; rest text := t;
BEGIN
  IF old = '' THEN RETURN t; END IF;
  LOOP
    place := position(lower(old) IN lower(rest));
    IF place = 0 THEN RETURN result || rest; END IF;
    result := result || left(rest, place - 1) || new;
    rest := substring(rest, place + length(old));
  END LOOP;
END $$;
CREATE FUNCTION ms.like_regex(pattern text, escape text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE result text := '^'; place int := 1; c text; closing int;
BEGIN
  WHILE place <= length(pattern) LOOP
    c := substring(pattern, place, 1);
    closing := position(']' IN substring(pattern, place + 1));
    IF escape <> '' AND c = escape AND place < length(pattern) THEN
      place := place + 1;
      result := result || regexp_replace(substring(pattern, place, 1), '([^[:alnum:]])', '\\\1');
    ELSIF c = '%' THEN result := result || '.*';
    ELSIF c = '_' THEN result := result || '.';
    ELSIF c = '[' AND closing > 1 THEN
      result := result || '[' || substring(pattern, place + 1, closing - 1) || ']';
      place := place + closing;
    ELSE result := result || regexp_replace(c, '([^[:alnum:]])', '\\\1');
    END IF;
    place := place + 1;
  END LOOP;
  RETURN result || '$';
END $$;
CREATE FUNCTION ms.patindex(pattern text, t text) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
  FOR place IN 1 .. length(t) LOOP
    IF substring(t, place) ~ ms.like_regex(ltrim(pattern, '%'), '') THEN RETURN place; END IF;
    EXIT WHEN left(pattern, 1) <> '%';
  END LOOP;
  RETURN 0;
END $$;
CREATE FUNCTION ms.character(n int) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT CASE WHEN n = 0 THEN U&'\+10F7FF' WHEN n BETWEEN 55296 AND 57343 THEN chr(1112064 + n - 55296)
    WHEN n BETWEEN 1 AND 65535 THEN chr(n) END
$$;
CREATE FUNCTION ms.parsename(t text, part int) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT btrim((string_to_array(t, '.'))[cardinality(string_to_array(t, '.')) - part + 1], '[]"')
$$;

-- Dates.
CREATE FUNCTION ms.datepart(part text, ticks int8) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT CASE part
    WHEN 'year' THEN extract(year FROM t) WHEN 'quarter' THEN extract(quarter FROM t) WHEN 'month' THEN extract(month FROM t)
    WHEN 'dayofyear' THEN extract(doy FROM t) WHEN 'day' THEN extract(day FROM t)
    WHEN 'week' THEN floor((extract(doy FROM t) + extract(dow FROM date_trunc('year', t)) - 1) / 7) + 1
    WHEN 'weekday' THEN extract(dow FROM t) + 1 WHEN 'iso_week' THEN extract(week FROM t)
    WHEN 'hour' THEN ticks / 36000000000 % 24 WHEN 'minute' THEN ticks / 600000000 % 60 WHEN 'second' THEN ticks / 10000000 % 60
    WHEN 'millisecond' THEN ticks / 10000 % 1000 WHEN 'microsecond' THEN ticks / 10 % 1000000 WHEN 'nanosecond' THEN ticks % 10000000 * 100
  END::int FROM (SELECT ms.timestamp(ticks) AS t) x
$$;
CREATE FUNCTION ms.month_number(ticks int8) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT (extract(year FROM t) * 12 + extract(month FROM t) - 1)::int FROM (SELECT ms.timestamp(ticks) AS t) x
$$;
CREATE FUNCTION ms.first_of_month(ticks int8) RETURNS int8 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT ms.ticks(date_trunc('month', ms.timestamp(ticks)))
$$;
CREATE FUNCTION ms.add_months(ticks int8, months int8) RETURNS int8 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT ms.ticks(date_trunc('day', ms.timestamp(ticks)) + months * INTERVAL '1 month') + ticks % 864000000000
$$;
CREATE FUNCTION ms.offset_from_text(t text) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT CASE left(t, 1) WHEN '-' THEN -1 ELSE 1 END * (substring(t, 2, 2)::int * 60 + substring(t, 5, 2)::int)
$$;

-- Names of things.
CREATE FUNCTION ms.db_id(wanted text) RETURNS int LANGUAGE sql STABLE AS $$
  SELECT database_id FROM cat.databases WHERE lower(name) = lower(wanted)
$$;
CREATE FUNCTION ms.db_name(wanted int) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT name FROM cat.databases WHERE database_id = wanted
$$;
CREATE FUNCTION ms.object_name(wanted int, in_database int) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT name FROM cat.objects WHERE object_id = wanted AND database_id = in_database
$$;
CREATE FUNCTION ms.object_schema_name(wanted int, in_database int) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT s.name FROM cat.objects o JOIN cat.schemas s USING (database_id, schema_id) WHERE o.object_id = wanted AND o.database_id = in_database
$$;
CREATE FUNCTION ms.schema_id(in_database int, wanted text) RETURNS int LANGUAGE sql STABLE AS $$
  SELECT schema_id FROM cat.schemas WHERE database_id = in_database AND lower(name) = lower(wanted)
$$;
CREATE FUNCTION ms.schema_name(in_database int, wanted int) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT name FROM cat.schemas WHERE database_id = in_database AND schema_id = wanted
$$;
CREATE FUNCTION ms.object_id(wanted text, in_database int, kind text) RETURNS int LANGUAGE sql STABLE AS $$
  SELECT o.object_id FROM cat.objects o JOIN cat.schemas s USING (database_id, schema_id)
  WHERE o.database_id = coalesce(ms.db_id(nullif(ms.parsename(wanted, 3), '')), in_database)
    AND lower(s.name) = lower(coalesce(nullif(ms.parsename(wanted, 2), ''), 'dbo')) AND lower(o.name) = lower(ms.parsename(wanted, 1))
    AND (kind IS NULL OR o.type = rtrim(kind))
$$;
CREATE FUNCTION ms.col_name(of_object int, wanted int) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT name FROM cat.columns WHERE object_id = of_object AND column_id = wanted
$$;
CREATE FUNCTION ms.col_length(of_object int, wanted text) RETURNS int2 LANGUAGE sql STABLE AS $$
  SELECT max_length::int2 FROM cat.columns WHERE object_id = of_object AND lower(name) = lower(wanted)
$$;
CREATE FUNCTION ms.columnproperty(of_object int, wanted text, property text) RETURNS int LANGUAGE sql STABLE AS $$
  SELECT CASE lower(property) WHEN 'allowsnull' THEN is_nullable WHEN 'columnid' THEN column_id WHEN 'ordinal' THEN column_id
    WHEN 'isidentity' THEN (identity_seed IS NOT NULL)::int WHEN 'iscomputed' THEN (computed IS NOT NULL)::int
    WHEN 'precision' THEN CASE WHEN precision > 0 THEN precision ELSE length END WHEN 'scale' THEN scale
    WHEN 'charmaxlen' THEN length WHEN 'isrowguidcol' THEN is_rowguid WHEN 'issparse' THEN is_sparse END
  FROM cat.columns WHERE object_id = of_object AND lower(name) = lower(wanted)
$$;
CREATE FUNCTION ms.objectproperty(wanted int, property text) RETURNS int LANGUAGE sql STABLE AS $$
  SELECT CASE lower(property) WHEN 'istable' THEN (type = 'U')::int WHEN 'isusertable' THEN (type = 'U' AND is_ms_shipped = 0)::int
    WHEN 'isview' THEN (type = 'V')::int WHEN 'ismsshipped' THEN is_ms_shipped WHEN 'isindexed' THEN
      (SELECT count(*) FROM cat.indexes i WHERE i.object_id = wanted)::int
    WHEN 'tablehasprimarykey' THEN (SELECT count(*) FROM cat.indexes i WHERE i.object_id = wanted AND i.is_primary_key = 1)::int
    WHEN 'tablehasidentity' THEN (SELECT count(*) FROM cat.columns c WHERE c.object_id = wanted AND c.identity_seed IS NOT NULL)::int
    WHEN 'ownerid' THEN 1 WHEN 'schemaid' THEN schema_id END
  FROM cat.objects WHERE object_id = wanted
$$;
CREATE FUNCTION ms.type_name(in_database int, wanted int) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT name FROM sys.types WHERE user_type_id = wanted AND _db = in_database LIMIT 1))
$$;

-- Identity columns.
CREATE FUNCTION ms.ident_current(of_object int) RETURNS numeric LANGUAGE plpgsql STABLE AS $$
DECLARE result numeric;
BEGIN
  IF of_object IS NULL OR to_regclass('u.identity_' || of_object) IS NULL THEN RETURN NULL; END IF;
  EXECUTE format('SELECT last_value FROM u.identity_%s', of_object) INTO result;
  RETURN result;
END $$;
CREATE FUNCTION ms.ident_seed(of_object int) RETURNS numeric LANGUAGE sql STABLE AS $$
  SELECT identity_seed::numeric FROM cat.columns WHERE object_id = of_object AND identity_seed IS NOT NULL
$$;
CREATE FUNCTION ms.ident_incr(of_object int) RETURNS numeric LANGUAGE sql STABLE AS $$
  SELECT identity_increment::numeric FROM cat.columns WHERE object_id = of_object AND identity_seed IS NOT NULL
$$;
-- rowversion: one counter a database.
CREATE FUNCTION ms.next_rowversion(in_database int) RETURNS bytea LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN int8send(nextval('u.rowversion_' || in_database));
END $$;

-- The server.
CREATE FUNCTION ms.serverproperty(property text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT value FROM cat.properties WHERE name = lower(property)
$$;
CREATE FUNCTION ms.databasepropertyex(wanted text, property text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE lower(property) WHEN 'collation' THEN 'nvarchar:' || collation_name WHEN 'status' THEN 'nvarchar:ONLINE'
    WHEN 'updateability' THEN CASE is_read_only WHEN 1 THEN 'nvarchar:READ_ONLY' ELSE 'nvarchar:READ_WRITE' END
    WHEN 'recovery' THEN 'nvarchar:FULL' WHEN 'useraccess' THEN 'nvarchar:MULTI_USER' WHEN 'version' THEN 'int:957' END
  FROM cat.databases WHERE lower(name) = lower(wanted)
$$;

-- Change data capture.
CREATE FUNCTION ms.is_bit_set(place int, mask bytea) RETURNS int2 LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT CASE WHEN place BETWEEN 1 AND length(mask) * 8
    THEN ((get_byte(mask, length(mask) - 1 - (place - 1) / 8) >> ((place - 1) % 8)) & 1)::int2 ELSE 0::int2 END
$$;
-- fn_cdc_get_all_changes_… refuses ranges that begin before the capture instance does, with an odd error.
CREATE FUNCTION ms.lsn_range(low bytea, high bytea, in_database int, instance text, function text) RETURNS bool LANGUAGE plpgsql STABLE AS $$
DECLARE starts bytea; highest bytea; changes text; mapping text;
BEGIN
  SELECT 'u.t' || o.object_id INTO changes FROM cat.objects o JOIN cat.schemas s USING (database_id, schema_id)
    WHERE o.database_id = in_database AND s.name = 'cdc' AND o.name = 'change_tables';
  SELECT 'u.t' || o.object_id INTO mapping FROM cat.objects o JOIN cat.schemas s USING (database_id, schema_id)
    WHERE o.database_id = in_database AND s.name = 'cdc' AND o.name = 'lsn_time_mapping';
  EXECUTE format('SELECT c5 FROM %s WHERE lower(c4) = lower($1)', changes) INTO starts USING instance;
  EXECUTE format('SELECT max(c1) FROM %s', mapping) INTO highest;
  IF low IS NULL OR high IS NULL OR low < starts OR high > highest OR low > high THEN
    PERFORM ms.fail(313, 16, 'An insufficient number of arguments were supplied for the procedure or function ' || function || ' ... .');
  END IF;
  RETURN true;
END $$;

-- Rights.
CREATE FUNCTION ms.is_srvrolemember(role_name text, login_name text) RETURNS int LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN lower(role_name) = 'public' OR lower(login_name) = 'sa' AND lower(role_name) = 'sysadmin' OR EXISTS (
      SELECT 1 FROM cat.role_members WHERE database_id = 0 AND lower(role) IN (lower(role_name), 'sysadmin') AND lower(member) = lower(login_name))
    OR lower(login_name) = 'sa' THEN 1 ELSE 0 END
$$;
-- The user of a login in a database: dbo for administrators, null without access.
CREATE FUNCTION ms.user_of(login_name text, in_database int) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN ms.is_srvrolemember('sysadmin', login_name) = 1 THEN 'dbo'
    ELSE coalesce((SELECT name FROM cat.users WHERE database_id = in_database AND lower(login) = lower(login_name)),
                  CASE WHEN in_database < 5 THEN 'guest' END) END
$$;
CREATE FUNCTION ms.user_name(in_database int, wanted int) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT name FROM cat.users WHERE database_id = in_database AND principal_id = wanted
$$;
CREATE FUNCTION ms.roles_of(in_database int, user_name text) RETURNS SETOF text LANGUAGE sql STABLE AS $$
  WITH RECURSIVE r(name) AS (
    SELECT lower(user_name) UNION SELECT 'public'
    UNION SELECT lower(m.role) FROM cat.role_members m JOIN r ON lower(m.member) = r.name WHERE m.database_id = in_database)
  SELECT name FROM r
$$;
CREATE FUNCTION ms.is_member(in_database int, role_name text, user_name text) RETURNS int LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM cat.users WHERE database_id = in_database AND lower(name) = lower(role_name)) THEN NULL
    WHEN lower(user_name) = 'dbo' AND lower(role_name) = 'db_owner' OR lower(role_name) IN (SELECT ms.roles_of(in_database, user_name)) THEN 1 ELSE 0 END
$$;
CREATE FUNCTION ms.has_dbaccess(login_name text, wanted text) RETURNS int LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN ms.db_id(wanted) IS NULL THEN NULL WHEN ms.user_of(login_name, ms.db_id(wanted)) IS NULL THEN 0 ELSE 1 END
$$;
CREATE FUNCTION ms.has_permission(login_name text, in_database int, wanted text, of_class text, of_object int) RETURNS bool LANGUAGE plpgsql STABLE AS $$
DECLARE me text := ms.user_of(login_name, in_database); roles text[]; in_schema int; states text[];
BEGIN
  IF me = 'dbo' THEN RETURN true; END IF;
  IF of_class = 'SERVER' THEN
    RETURN EXISTS (SELECT 1 FROM cat.permissions p WHERE p.class = 'SERVER' AND lower(p.grantee) = lower(login_name)
      AND p.permission IN (wanted, 'CONTROL SERVER') AND p.state = 'G');
  END IF;
  IF me IS NULL THEN RETURN false; END IF;
  roles := ARRAY(SELECT ms.roles_of(in_database, me));
  IF 'db_owner' = ANY (roles) THEN RETURN true; END IF;
  SELECT schema_id INTO in_schema FROM cat.objects WHERE object_id = of_object;
  states := ARRAY(SELECT p.state FROM cat.permissions p WHERE p.database_id = in_database AND lower(p.grantee) = ANY (roles)
    AND p.permission IN (wanted, 'CONTROL', 'ALL')
    AND (p.class = 'DATABASE' OR p.class = 'OBJECT' AND p.major_id = of_object
         OR p.class = 'SCHEMA' AND p.major_id = CASE of_class WHEN 'SCHEMA' THEN of_object ELSE in_schema END));
  IF 'D' = ANY (states) THEN RETURN false; END IF;
  RETURN 'G' = ANY (states) OR wanted = 'SELECT' AND 'db_datareader' = ANY (roles)
    OR wanted IN ('INSERT', 'UPDATE', 'DELETE') AND 'db_datawriter' = ANY (roles)
    OR wanted IN ('ALTER', 'CREATE TABLE') AND 'db_ddladmin' = ANY (roles) OR wanted = 'CONNECT';
END $$;
CREATE FUNCTION ms.has_perms_by_name(login_name text, in_database int, securable text, of_class text, wanted text) RETURNS int LANGUAGE sql STABLE AS $$
  SELECT CASE
    WHEN securable IS NULL AND of_class IS NULL THEN ms.has_permission(login_name, in_database, upper(wanted), 'SERVER', 0)::int
    WHEN upper(of_class) = 'DATABASE' THEN ms.has_permission(login_name, coalesce(ms.db_id(securable), in_database), upper(wanted), 'DATABASE', 0)::int
    WHEN upper(of_class) = 'SCHEMA' THEN ms.has_permission(login_name, in_database, upper(wanted), 'SCHEMA', ms.schema_id(in_database, securable))::int
    WHEN ms.object_id(securable, in_database, NULL) IS NULL THEN NULL
    ELSE ms.has_permission(login_name, in_database, upper(wanted), 'OBJECT', ms.object_id(securable, in_database, NULL))::int END
$$;
