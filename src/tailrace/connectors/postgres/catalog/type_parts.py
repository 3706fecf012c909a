"""Reads what shows in values of users' types and changes without a change of rows: labels of enums, composite types.

A value of a composite type is printed with the attributes that the type has by now, so `ALTER TYPE ... ADD ATTRIBUTE`
changes old rows, and so does a column that is added to a table whose rows are values of another one. Enums and
composite types may be parts of others: of arrays, domains, ranges and composite types.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import psycopg

from tailrace.model.structure import Fact

TypeFacts = Mapping[str, Mapping[str, Fact]]
"""By a type's oid, what values of the type and of its parts show."""

# Types of the server have lower oids, and no parts that change.
FIRST_OWN = 16384
_PARTS = f"""
WITH RECURSIVE used (oid, part) AS (
  SELECT 0::oid, unnest(%s::oid[])
  UNION
  SELECT t.oid, of.part FROM used JOIN pg_type t ON t.oid = used.part CROSS JOIN LATERAL (
    SELECT t.typbasetype WHERE t.typtype = 'd'
    UNION ALL SELECT t.typelem WHERE t.typcategory = 'A'
    UNION ALL SELECT r.rngsubtype FROM pg_range r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
    UNION ALL SELECT a.atttypid FROM pg_attribute a
      WHERE a.attrelid = t.typrelid AND t.typtype = 'c' AND a.attnum > 0 AND NOT a.attisdropped
  ) AS of (part) WHERE of.part >= {FIRST_OWN}
)
SELECT used.oid::text, used.part::text, t.typname::text,
  (SELECT jsonb_object_agg(e.oid::text, e.enumlabel) FROM pg_enum e WHERE e.enumtypid = t.oid),
  CASE WHEN t.typtype = 'c' THEN coalesce((
    SELECT string_agg(a.attnum || ':' || a.atttypid, ' ' ORDER BY a.attnum) FROM pg_attribute a
    WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped), '') END
FROM used JOIN pg_type t ON t.oid = used.part
"""


def type_facts(connection: psycopg.Connection, types: Collection[str]) -> TypeFacts:
    """What values of users' types show. Raises psycopg.Error."""
    parts: dict[str, set[str]] = {}
    own: dict[str, dict[str, Fact]] = {}
    rows = connection.execute(_PARTS.encode(), [sorted(types)]) if types else ()
    for whole, part, name, labels, attributes in rows:
        parts.setdefault(whole, set()).add(part)
        own[part] = {
            f"label {label}": Fact(text, f"a label of the enum {name} was renamed to {text}")
            for label, text in (labels or {}).items()
        }
        if attributes is not None:
            why = f"an attribute of the composite type {name} was added or dropped"
            own[part][f"attributes {part}"] = Fact(attributes, why)
    facts_of_parts = {each: [own.get(part, {}) for part in _reached(each, parts)] for each in types}
    return {
        each: {name: fact for facts in all_ for name, fact in facts.items()} for each, all_ in facts_of_parts.items()
    }


def _reached(type_: str, parts: Mapping[str, Collection[str]]) -> list[str]:
    """A type and all of its parts, in one order whatever the server's is."""
    reached, left = {type_}, [type_]
    while left:
        new = {*parts.get(left.pop(), ())} - reached
        reached |= new
        left += new
    return sorted(reached)
