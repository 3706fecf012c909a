-- Narrow text to the characters of a code page; others become question marks, one for each UTF-16 code unit.
CREATE FUNCTION ms.narrow_{code_page}(t text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT CASE WHEN octet_length(t) = length(t) THEN t
    ELSE regexp_replace(regexp_replace(t, '[\U00010000-\U0010f7fe]', '??', 'g'),
                        '[^\x01-\x7f{characters}\U0010f7ff]', '?', 'g') END
$$;

