-- Types that are rare: composite, system types, arrays of them, ranges in arrays, multiranges, XML.
-- @compare {"requires": ["xml"]}
-- @property include.unknown.datatypes=true
-- @property column.propagate.source.type=.*
CREATE TYPE comp AS (a integer, b text);
CREATE TYPE frange AS RANGE (subtype = float8);
CREATE DOMAIN dcomp AS comp;
CREATE DOMAIN dint AS integer CHECK (VALUE > 0);
CREATE DOMAIN darr AS integer[];
CREATE TABLE odd (id serial PRIMARY KEY, a comp, b comp[], c frange, d frange[], e int4multirange, f int4multirange[], g pg_lsn, h pg_lsn[], i xid, j xid8, k cid, l tid, m txid_snapshot, n pg_snapshot, o regclass, p regtype, q oidvector, r int2vector, s tsquery[], t tsvector[], u jsonpath, v name, w name[], x "char"[], y bpchar[], z refcursor, aa refcursor[], ab macaddr8[], ac bit varying(5)[], ad money[], ae interval[], af xml[], ag point[], ah circle[], ai box[], aj dint, ak dint[], al darr, am dcomp, an regclass[], ao aclitem, ap int2[], aq float4[], ar bool[], au char(3)[], av uuid[], aw xid[], ax line, ay lseg, az polygon, ba timestamptz(2)[], bb numeric(6,2)[], bc numeric[], bd time(2)[], be varchar(3)[], bf regproc, bg regnamespace, bh regrole, bi regconfig);
CREATE FUNCTION fill() RETURNS void LANGUAGE sql AS $$
INSERT INTO odd (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ap, aq, ar, au, av, aw, ax, ay, az, ba, bb, bc, bd, be, bf, bg, bi) VALUES
 ((1, 'x'), ARRAY[(1, 'x')::comp, (2, 'y "q"')::comp], '[1,2)', '{"[1,2)"}', '{[1,2),[4,5)}', '{"{[1,2)}"}', '0/16B3748', '{0/1,0/2}', '7', '8', '9', '(0,1)', '10:20:10,14,15', '10:20:10,14,15', 'pg_class', 'integer', '1 2', '3 4', '{a & b}', '{a b}', '$.a[*]', 'n', '{n,m}', '{x,y}', '{ab,c }', NULL, NULL, '{08:00:2b:01:02:03:04:05}', '{101,1}', '{1.5}', '{1 day}', '{<a/>}', '{"(1,2)"}', '{"<(1,2),3>"}', '{(1,2),(0,0)}', 5, '{5,6}', '{7,8}', (3, 'z'), '{pg_class}', '{1,NULL}', '{1.5,NaN}', '{t,f,NULL}', '{a,bcd}', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', '{7}', '{1,2,3}', '[(0,0),(1,1)]', '((0,0),(1,1),(2,0))', '{2024-01-01 00:00:00.129+00}', '{1.5,NULL,12.345}', '{1.50,NaN,1e20}', '{01:02:03.456}', '{a,bc}', 'now', 'public', 'english'),
 (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
$$;
SELECT fill();
-- @run
SELECT fill();
