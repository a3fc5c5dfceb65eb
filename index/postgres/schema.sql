-- The tables of an index: those of package index, each with the tenant before its columns and
-- before those of its keys. The program replaces the name of the schema if it is not coppice.
-- What the columns mean is said in index/sqlite.
--
-- All of it can be made again from the logs. So another version replaces the tables, and does
-- not convert them.

CREATE TABLE coppice.index_version (version int NOT NULL);

GRANT SELECT ON coppice.index_version TO PUBLIC;

-- A row is the index of a tenant. Who writes locks it.
CREATE TABLE coppice.index_rooms (
	tenant text COLLATE "C" PRIMARY KEY,
	life   bigint NOT NULL -- another one after each time that the index was emptied
);

CREATE TABLE coppice.index_sessions (
	tenant       text COLLATE "C" NOT NULL,
	id           bigint NOT NULL,
	name         text COLLATE "C",
	part         bigint NOT NULL DEFAULT 0,
	chain        bigint NOT NULL DEFAULT 0,
	nth          bigint NOT NULL DEFAULT 0,
	ord          bigint NOT NULL DEFAULT 0,
	sid          text COLLATE "C" NOT NULL DEFAULT '',
	row          bytea NOT NULL DEFAULT '',
	dir          bigint NOT NULL DEFAULT 0,
	folded       bigint NOT NULL DEFAULT 0,
	tail         text COLLATE "C" NOT NULL DEFAULT '',
	key          text COLLATE "C" NOT NULL DEFAULT '',
	native       text COLLATE "C" NOT NULL DEFAULT '',
	title        text COLLATE "C" NOT NULL DEFAULT '',
	given        text COLLATE "C" NOT NULL DEFAULT '',
	first        text COLLATE "C" NOT NULL DEFAULT '',
	worth        bigint NOT NULL DEFAULT 0,
	sort_title   text COLLATE "C" NOT NULL DEFAULT '',
	tags         text COLLATE "C" NOT NULL DEFAULT '[]',
	cwd          text COLLATE "C" NOT NULL DEFAULT '',
	agent        text COLLATE "C" NOT NULL DEFAULT '',
	maker        bigint NOT NULL DEFAULT 0,
	created      bigint NOT NULL DEFAULT 0,
	updated      bigint NOT NULL DEFAULT 0,
	said         bigint NOT NULL DEFAULT 0,
	entries      bigint NOT NULL DEFAULT 0,
	messages     bigint NOT NULL DEFAULT 0,
	branches     bigint NOT NULL DEFAULT 0,
	billed       bigint NOT NULL DEFAULT 0,
	recorded     bigint NOT NULL DEFAULT 0,
	tokens       bigint NOT NULL DEFAULT 0,
	context      bigint NOT NULL DEFAULT 0,
	models       text COLLATE "C" NOT NULL DEFAULT '{}',
	tools        text COLLATE "C" NOT NULL DEFAULT '{}',
	parent       text COLLATE "C" NOT NULL DEFAULT '',
	relation     text COLLATE "C" NOT NULL DEFAULT '',
	continuation bigint NOT NULL DEFAULT 0,
	continued_to text COLLATE "C" NOT NULL DEFAULT '',
	replaced     text COLLATE "C" NOT NULL DEFAULT '[]',
	names        text COLLATE "C" NOT NULL DEFAULT '[]',
	original     text COLLATE "C" NOT NULL DEFAULT '',
	begins       bigint NOT NULL DEFAULT 0,
	elsewhere    text COLLATE "C" NOT NULL DEFAULT '{}',
	pinned       bigint NOT NULL DEFAULT 0,
	problems     bigint NOT NULL DEFAULT 0,
	docs         bigint NOT NULL DEFAULT 0,
	size         bigint NOT NULL DEFAULT 0,
	modified     bigint NOT NULL DEFAULT 0,
	archived     bigint NOT NULL DEFAULT 0,
	pos          bigint NOT NULL DEFAULT 0,
	head_hash    bigint NOT NULL DEFAULT 0,
	tail_pos     bigint NOT NULL DEFAULT 0,
	tail_hash    bigint NOT NULL DEFAULT 0,
	next         bigint NOT NULL DEFAULT 0,
	leaf         bigint NOT NULL DEFAULT -1,
	leaf_id      text COLLATE "C" NOT NULL DEFAULT '',
	calls        text COLLATE "C" NOT NULL DEFAULT '[]',
	breaks       bigint NOT NULL DEFAULT 0,
	PRIMARY KEY (tenant, id)
);

CREATE UNIQUE INDEX index_stats ON coppice.index_sessions (tenant, name) INCLUDE (id, size, modified, archived, part);
CREATE INDEX index_by_sid      ON coppice.index_sessions (tenant, sid);
CREATE INDEX index_by_tail     ON coppice.index_sessions (tenant, tail, name) WHERE tail <> '';
CREATE INDEX index_by_key      ON coppice.index_sessions (tenant, key) WHERE key <> '';
CREATE INDEX index_by_native   ON coppice.index_sessions (tenant, native, name) WHERE native <> '';
CREATE INDEX index_by_parent   ON coppice.index_sessions (tenant, parent, updated, ord) WHERE parent <> '';
CREATE INDEX index_by_relation ON coppice.index_sessions (tenant, relation, updated, ord) WHERE relation <> '';
CREATE INDEX index_folds       ON coppice.index_sessions (tenant, parent) WHERE folded = 1 AND part <> 1;
CREATE INDEX index_by_maker    ON coppice.index_sessions (tenant, maker);
CREATE INDEX index_by_chain    ON coppice.index_sessions (tenant, chain, nth) WHERE chain <> 0;
CREATE INDEX index_by_next     ON coppice.index_sessions (tenant, continued_to) WHERE continued_to <> '';
CREATE INDEX index_by_original ON coppice.index_sessions (tenant, original) WHERE original <> '';
CREATE INDEX index_pinned      ON coppice.index_sessions (tenant, updated, ord) WHERE pinned = 1;
CREATE INDEX index_archived    ON coppice.index_sessions (tenant, updated, ord) WHERE archived = 1;

CREATE TABLE coppice.index_tags (
	tenant     text COLLATE "C" NOT NULL,
	tag        text COLLATE "C" NOT NULL,
	session    bigint NOT NULL,
	updated    bigint NOT NULL DEFAULT 0,
	created    bigint NOT NULL DEFAULT 0,
	sort_title text COLLATE "C" NOT NULL DEFAULT '',
	messages   bigint NOT NULL DEFAULT 0,
	tokens     bigint NOT NULL DEFAULT 0,
	size       bigint NOT NULL DEFAULT 0,
	PRIMARY KEY (tenant, tag, session)
);

CREATE INDEX index_tags_of ON coppice.index_tags (tenant, session);

-- What sessions are listed by: all, those of a directory, and those of a tag.
DO $$
DECLARE col text;
BEGIN
	FOREACH col IN ARRAY ARRAY['updated', 'created', 'sort_title', 'messages', 'tokens', 'size'] LOOP
		EXECUTE format('CREATE INDEX index_by_%1$s ON coppice.index_sessions (tenant, %1$s, ord)', col);
		EXECUTE format('CREATE INDEX index_dir_%1$s ON coppice.index_sessions (tenant, dir, %1$s, ord)', col);
		EXECUTE format('CREATE INDEX index_tag_%1$s ON coppice.index_tags (tenant, tag, %1$s, session)', col);
	END LOOP;
END $$;

CREATE TABLE coppice.index_files (
	tenant  text COLLATE "C" NOT NULL,
	name    text COLLATE "C" NOT NULL,
	path    text COLLATE "C" NOT NULL,
	session bigint NOT NULL,
	PRIMARY KEY (tenant, name, path, session)
);

CREATE INDEX index_files_of ON coppice.index_files (tenant, session);

CREATE TABLE coppice.index_entries (
	tenant  text COLLATE "C" NOT NULL,
	session bigint NOT NULL,
	n       bigint NOT NULL,
	id      bytea,
	parent  bigint NOT NULL,
	pos     bigint NOT NULL,
	time    bigint NOT NULL,
	class   bigint NOT NULL,
	context bigint,
	PRIMARY KEY (tenant, session, n)
);

CREATE UNIQUE INDEX index_entry_ids ON coppice.index_entries (tenant, session, id);
CREATE INDEX index_entry_breaks  ON coppice.index_entries (tenant, session, n) INCLUDE (parent, class) WHERE parent <> n - 1 OR class NOT IN (0, 5, 7);
CREATE INDEX index_entry_remarks ON coppice.index_entries (tenant, session, n) WHERE class = 5;

CREATE TABLE coppice.index_damage (
	tenant  text COLLATE "C" NOT NULL,
	session bigint NOT NULL,
	id      bytea NOT NULL,
	n       bigint NOT NULL,
	PRIMARY KEY (tenant, session, id, n)
);

CREATE TABLE coppice.index_docs (
	tenant  text COLLATE "C" NOT NULL,
	id      bigint NOT NULL,
	session bigint NOT NULL,
	entry   bigint NOT NULL,
	part    bigint NOT NULL,
	kind    bigint NOT NULL,
	role    bigint NOT NULL,
	tool    bigint NOT NULL,
	model   bigint NOT NULL,
	elsewhere bigint NOT NULL DEFAULT 0,
	len     bigint NOT NULL,
	tf      bytea,
	late    bigint NOT NULL DEFAULT 0,
	failed  bigint NOT NULL DEFAULT 0,
	PRIMARY KEY (tenant, id)
);

CREATE TABLE coppice.index_silent (
	tenant  text COLLATE "C" NOT NULL,
	session bigint NOT NULL,
	entry   bigint NOT NULL,
	time    bigint NOT NULL,
	role    bigint NOT NULL,
	model   bigint NOT NULL,
	elsewhere bigint NOT NULL DEFAULT 0,
	PRIMARY KEY (tenant, session, entry)
);

CREATE TABLE coppice.index_terms (
	tenant text COLLATE "C" NOT NULL,
	term   text COLLATE "C" NOT NULL,
	df     bigint NOT NULL,
	stem   text COLLATE "C" NOT NULL,
	PRIMARY KEY (tenant, term)
);

CREATE INDEX index_term_stems ON coppice.index_terms (tenant, stem, df) WHERE stem <> '';

CREATE TABLE coppice.index_names (
	tenant text COLLATE "C" NOT NULL,
	id     bigint NOT NULL,
	name   text COLLATE "C" NOT NULL,
	PRIMARY KEY (tenant, id),
	UNIQUE (tenant, name)
);

CREATE TABLE coppice.index_counters (
	tenant text COLLATE "C" NOT NULL,
	name   text COLLATE "C" NOT NULL,
	value  bigint NOT NULL,
	PRIMARY KEY (tenant, name)
);

CREATE TABLE coppice.index_swept (
	tenant   text COLLATE "C" NOT NULL,
	id       bigint NOT NULL,
	epoch    text COLLATE "C" NOT NULL,
	listing  text COLLATE "C" NOT NULL,
	time     bigint NOT NULL,
	sessions bigint NOT NULL,
	PRIMARY KEY (tenant, id)
);

CREATE TABLE coppice.index_usage (
	tenant      text COLLATE "C" NOT NULL,
	id          bigint NOT NULL,
	response    text COLLATE "C" NOT NULL,
	counted     bigint NOT NULL,
	time        bigint NOT NULL,
	provider    bigint NOT NULL,
	model       bigint NOT NULL,
	tool        bigint NOT NULL,
	input       bigint NOT NULL,
	cache_read  bigint NOT NULL,
	cache_write bigint NOT NULL,
	output      bigint NOT NULL,
	reasoning   bigint NOT NULL,
	cache_hour  bigint NOT NULL,
	cost        bigint NOT NULL,
	recorded    bigint NOT NULL,
	PRIMARY KEY (tenant, id)
);

CREATE INDEX index_usage_responses ON coppice.index_usage (tenant, response);

CREATE TABLE coppice.index_ledgers (
	tenant  text COLLATE "C" NOT NULL,
	session bigint NOT NULL,
	data    bytea NOT NULL,
	PRIMARY KEY (tenant, session)
);

CREATE TABLE coppice.index_stale (
	tenant  text COLLATE "C" NOT NULL,
	session bigint NOT NULL,
	PRIMARY KEY (tenant, session)
);

-- The full text. Besides its words a text has two lexemes that say whose it is: one is for all
-- of the tenant, the other for those of about the same time (an era: see texts.go). So the words
-- of one tenant, and the newest texts with a frequent word, are found without looking at others.
CREATE TABLE coppice.index_texts (
	tenant text COLLATE "C" NOT NULL,
	id     bigint NOT NULL,
	tsv    tsvector NOT NULL,
	PRIMARY KEY (tenant, id)
);

CREATE INDEX index_words ON coppice.index_texts USING gin (tsv);

-- index_found returns the texts of a tenant that match, from one id to another: all, or, if most
-- is not NULL, so many of the newest.
--
-- It runs as the owner, because @@ is not leakproof: a policy would let nobody else use the index
-- of the words. So it has to find out by itself who may see the tenant. With IS TRUE, a condition
-- makes the planner use no other index.
CREATE FUNCTION coppice.index_found(whose text, wanted tsquery, low bigint, high bigint, most bigint) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
	within tsquery;
	owner  text := replace(replace(whose, '\', '\\'), '''', '''''');
BEGIN
	IF NOT (whose = ANY (coppice.tenants()) OR pg_has_role(session_user, current_user, 'USAGE')) THEN
		RAISE insufficient_privilege USING MESSAGE = format('the role %s may not see the tenant %s', session_user, whose);
	END IF;
	IF (high >> 26) - (low >> 26) < 32 THEN
		SELECT string_agg('''_@' || e || '@' || owner || '''', '|')::tsquery INTO within FROM generate_series(low >> 26, high >> 26) e;
	ELSE
		within := ('''_@@' || owner || '''')::tsquery;
	END IF;
	RETURN QUERY SELECT t.id FROM coppice.index_texts t
		WHERE t.tsv @@ (within && wanted) AND (t.tenant = whose) IS TRUE AND (t.id BETWEEN low AND high) IS TRUE
		ORDER BY t.id DESC LIMIT most;
END $$;

-- Whoever was admitted before has these tables, too.
DO $$
DECLARE
	t text;
	m record;
BEGIN
	FOREACH t IN ARRAY ARRAY['rooms', 'sessions', 'tags', 'files', 'entries', 'damage', 'docs', 'silent', 'terms', 'names', 'counters', 'swept', 'usage', 'ledgers', 'stale', 'texts'] LOOP
		PERFORM coppice.protect(format('coppice.%I', 'index_' || t)::regclass);
	END LOOP;
	FOR m IN SELECT DISTINCT role FROM coppice.members JOIN pg_roles ON rolname = role LOOP
		PERFORM coppice.entitle(m.role);
	END LOOP;
END $$;
