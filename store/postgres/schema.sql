-- The tables of a store, version 1. The program replaces the name of the schema if it is
-- not coppice.
--
-- Every table begins its key with the tenant, and what belongs to a log goes on with the log,
-- so that the schema can be distributed by that column (blobs: by ref). There is no sequence,
-- no foreign key and no trigger: nothing that one shard would have to ask another.

-- A row is a log, one in the trash, or, with the life 0, one that was deleted for good.
CREATE TABLE coppice.logs (
	tenant   text        NOT NULL,
	log      bytea       NOT NULL, -- from the tenant and the name
	slot     bigint      NOT NULL, -- 0, or when the log was removed, in nanoseconds since 1970
	name     text        NOT NULL,
	life     bigint      NOT NULL, -- whose lines it has; a rewritten log gets another one
	tail     bigint      NOT NULL, -- where the log ends: the bytes of its lines, with line ends
	modified timestamptz NOT NULL,
	marked   boolean     NOT NULL, -- the index has not seen it as it is now
	PRIMARY KEY (tenant, log, slot)
) WITH (fillfactor = 70);

CREATE INDEX logs_marked ON coppice.logs (tenant, log) WHERE marked;
CREATE INDEX logs_removed ON coppice.logs (tenant, slot) WHERE slot > 0;

CREATE TABLE coppice.lines (
	tenant text   NOT NULL,
	log    bytea  NOT NULL,
	life   bigint NOT NULL,
	pos    bigint NOT NULL, -- the bytes before it
	data   bytea  NOT NULL,
	PRIMARY KEY (tenant, log, life, pos)
);

-- The blobs that lines name.
CREATE TABLE coppice.refs (
	tenant text   NOT NULL,
	log    bytea  NOT NULL,
	life   bigint NOT NULL,
	ref    bytea  NOT NULL,
	PRIMARY KEY (tenant, log, life, ref)
);

CREATE INDEX refs_ref ON coppice.refs (tenant, ref);

-- Lives that are being written and that no log has yet.
CREATE TABLE coppice.drafts (
	tenant  text        NOT NULL,
	log     bytea       NOT NULL,
	life    bigint      NOT NULL,
	name    text        NOT NULL,
	touched timestamptz NOT NULL,
	PRIMARY KEY (tenant, log, life)
);

-- The first part of a blob has the length of it all.
CREATE TABLE coppice.blobs (
	tenant text   NOT NULL,
	ref    bytea  NOT NULL,
	part   int    NOT NULL,
	size   bigint NOT NULL,
	data   bytea  NOT NULL,
	PRIMARY KEY (tenant, ref, part)
);

ALTER TABLE coppice.blobs ALTER data SET STORAGE EXTERNAL;

-- Where blobs are, if not only above: see backend.go. Everyone may know: there is no secret in it.
CREATE TABLE coppice.blob_backends (
	place  text   PRIMARY KEY,
	id     text   NOT NULL,
	chosen bigint NOT NULL -- they go to the one with the highest number
);

GRANT SELECT ON coppice.blob_backends TO PUBLIC;

CREATE TABLE coppice.notes (
	tenant   text        NOT NULL,
	room     text        NOT NULL COLLATE "C",
	name     text        NOT NULL COLLATE "C",
	version  bigint      NOT NULL, -- another one after each write
	past     bigint[]    NOT NULL, -- the versions before, the latest first: see notes.go
	data     bytea       NOT NULL,
	modified timestamptz NOT NULL,
	PRIMARY KEY (tenant, room, name)
);

-- What a transaction locks: see lock.go.
CREATE TABLE coppice.gates (
	tenant text NOT NULL,
	gate   text NOT NULL,
	PRIMARY KEY (tenant, gate)
);

-- Who may see which tenant, and who may also write it. The owner of the tables may do all.
CREATE TABLE coppice.members (
	role   name    NOT NULL,
	tenant text    NOT NULL,
	writes boolean NOT NULL,
	PRIMARY KEY (role, tenant)
);

CREATE FUNCTION coppice.tenants() RETURNS text[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ SELECT coalesce(array_agg(tenant), '{}') FROM coppice.members WHERE role = session_user $$;

CREATE FUNCTION coppice.written() RETURNS text[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ SELECT coalesce(array_agg(tenant), '{}') FROM coppice.members WHERE role = session_user AND writes $$;

-- protect has a table show each role its own tenants only. A role that writes one tenant may only
-- read another: so a policy decides what is written, and the rights on the table do not suffice.
CREATE FUNCTION coppice.protect(t regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', t);
	EXECUTE format('CREATE POLICY tenant ON %s USING (tenant = ANY ((SELECT coppice.tenants())::text[])) WITH CHECK (tenant = ANY ((SELECT coppice.written())::text[]))', t);
	EXECUTE format('CREATE POLICY remover ON %s AS RESTRICTIVE FOR DELETE USING (tenant = ANY ((SELECT coppice.written())::text[]))', t);
END $$;

-- entitle gives a role the rights on the tables that its tenants need, and takes all others.
CREATE FUNCTION coppice.entitle(who name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	t regclass;
	does_write boolean := (SELECT bool_or(m.writes) FROM coppice.members m WHERE m.role = who);
BEGIN
	EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA coppice FROM %I', who);
	IF does_write IS NULL THEN -- it is a member of nothing
		EXECUTE format('REVOKE ALL ON SCHEMA coppice FROM %I', who);
		RETURN;
	END IF;
	EXECUTE format('GRANT USAGE ON SCHEMA coppice TO %I', who);
	EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA coppice TO %I', who);
	EXECUTE format('REVOKE ALL ON coppice.members FROM %I', who);
	IF does_write THEN
		FOR t IN SELECT p.polrelid FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
			WHERE p.polname = 'tenant' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'coppice.logs'::regclass)
		LOOP
			EXECUTE format('GRANT INSERT, UPDATE, DELETE ON %s TO %I', t, who);
		END LOOP;
	END IF;
END $$;

-- admit makes a role a member of a tenant, to read it and, if writes is true, to write it. The last
-- word about a role and a tenant counts.
CREATE FUNCTION coppice.admit(who name, what text, writes boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	INSERT INTO coppice.members AS m VALUES (who, what, admit.writes) ON CONFLICT (role, tenant) DO UPDATE SET writes = excluded.writes;
	PERFORM coppice.entitle(who);
END $$;

-- dismiss ends what admit began.
CREATE FUNCTION coppice.dismiss(who name, what text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	DELETE FROM coppice.members m WHERE m.role = who AND m.tenant = what;
	PERFORM coppice.entitle(who);
END $$;

REVOKE ALL ON FUNCTION coppice.protect(regclass), coppice.entitle(name), coppice.admit(name, text, boolean), coppice.dismiss(name, text) FROM PUBLIC;

DO $$
DECLARE t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['logs', 'lines', 'refs', 'drafts', 'blobs', 'notes', 'gates'] LOOP
		PERFORM coppice.protect(format('coppice.%I', t)::regclass);
	END LOOP;
END $$;
