package postgres

import "testing"

func TestTranslate(t *testing.T) {
	const of = ` WHERE tenant = 'it''s')`
	docs := `(SELECT * FROM s.index_docs` + of
	sessions := `(SELECT * FROM s.index_sessions` + of
	found := func(n, more string) string {
		return `s.index_found('it''s', $` + n + `::text::tsquery, ` + more + `)`
	}
	lookUp := func(table, alias, cond string) string {
		return `JOIN LATERAL (SELECT ` + alias + `.* FROM s.index_` + table + ` ` + alias + ` WHERE ` + alias + `.tenant = 'it''s' AND ( ` + cond + `) OFFSET 0) ` + alias + ` ON true`
	}
	list := func(p string) string {
		return `(SELECT e::bigint AS value, e COLLATE "C" AS atom FROM json_array_elements_text(replace(` + p + `::text, '\u0000', '\ufffd')::json) AS e)`
	}
	for _, c := range []struct{ query, want string }{
		{`SELECT id + 1 FROM docs d WHERE id >= ?`, `SELECT id + 1 FROM ` + docs + ` d WHERE id >= $1`},
		{`SELECT id FROM docs WHERE id = ?2 OR id = ?1`, `SELECT id FROM ` + docs + ` docs WHERE id = $2 OR id = $1`},
		{`SELECT 'FROM docs ? ''x'' --', 4294967295`, `SELECT 'FROM docs ? ''x'' --', 4294967295`},
		{`SELECT docs FROM docs AS d`, `SELECT docs FROM ` + docs + ` d`},
		{`SELECT name FROM sessions INDEXED BY stats WHERE part <> 2`, `SELECT name FROM ` + sessions + ` sessions  WHERE part <> 2`},
		{`SELECT 1 FROM sessions s NOT INDEXED WHERE NOT s.part = 1`, `SELECT 1 FROM ` + sessions + ` s  WHERE NOT s.part = 1`},
		{`SELECT 1 FROM docs d CROSS JOIN sessions s ON s.id = d.session`, `SELECT 1 FROM ` + docs + ` d ` + lookUp("sessions", "s", "s.id = d.session")},
		{
			`SELECT (SELECT 1 FROM docs d CROSS JOIN sessions s INDEXED BY x ON (s.id = d.session OR s.n IN (SELECT n FROM docs WHERE n = ?)) AND s.n = 1) LIMIT ?`,
			`SELECT (SELECT 1 FROM ` + docs + ` d ` + lookUp("sessions", "s", "(s.id = d.session OR s.n IN (SELECT n FROM "+docs+" docs WHERE n = $1)) AND s.n = 1") + `) LIMIT $2`,
		},
		{`SELECT 1 FROM docs d CROSS JOIN docs e ON e.id = d.id CROSS JOIN sessions ON sessions.id = e.session WHERE 1 = 1`, `SELECT 1 FROM ` + docs + ` d ` + lookUp("docs", "e", "e.id = d.id") + ` ` + lookUp("sessions", "sessions", "sessions.id = e.session") + ` WHERE 1 = 1`},
		{`SELECT 1 FROM docs p CROSS JOIN (SELECT s.sid) f WHERE 1 = 1`, `SELECT 1 FROM ` + docs + ` p CROSS JOIN (SELECT s.sid) f WHERE 1 = 1`},
		{`SELECT 1 FROM (SELECT s.sid) p CROSS JOIN docs f ON f.id = p.sid`, `SELECT 1 FROM (SELECT s.sid) p ` + lookUp("docs", "f", "f.id = p.sid")},
		{`SELECT 1 FROM docs d LEFT JOIN sessions s INDEXED BY x ON s.id = d.id`, `SELECT 1 FROM ` + docs + ` d LEFT JOIN ` + sessions + ` s  ON s.id = d.id`},
		{`SELECT coalesce(max(id), 0), min(f(a, b)) FROM docs`, `SELECT coalesce(max(id), 0), min(f(a, b)) FROM ` + docs + ` docs`},
		{`SELECT instr(lower(a), lower(?))`, `SELECT strpos(lower(a), lower($1 COLLATE "C"))`},
		{`SELECT id >> 8 << 8 || b <> c`, `SELECT id >> 8 << 8 || b <> c`},
		{
			`SELECT f.rowid FROM fts f CROSS JOIN docs d ON d.id = f.rowid WHERE f.fts MATCH ? AND f.rowid > ?`,
			`SELECT f.id FROM ` + found("1", "$3::bigint, $4::bigint, $5::bigint") + ` AS f(id) ` + lookUp("docs", "d", "d.id = f.id") + ` WHERE true AND f.id > $2`,
		},
		{
			`SELECT 1 WHERE ?1 = 1 AND id IN (SELECT rowid FROM fts WHERE fts MATCH ?3) AND ?5 = 5`,
			`SELECT 1 WHERE $1 = 1 AND id IN (SELECT id FROM ` + found("3", "$6::bigint, $7::bigint, $8::bigint") + ` AS fts(id) WHERE true) AND $5 = 5`,
		},
		{`SELECT value FROM json_each(?) WHERE 1 = 1`, `SELECT value FROM ` + list("$1") + ` json_each WHERE 1 = 1`},
		{`SELECT j.atom FROM json_each(?1) j CROSS JOIN docs d ON d.id = j.value`, `SELECT j.atom FROM ` + list("$1") + ` j ` + lookUp("docs", "d", "d.id = j.value")},
		{
			`SELECT j.key FROM sessions s, json_each(s.tools) j GROUP BY j.key`,
			`SELECT j.key FROM ` + sessions + ` s, LATERAL (SELECT e.key, e.value::bigint AS value FROM json_each_text(replace(s.tools, '\u0000', '\ufffd')::json) AS e) j GROUP BY j.key`,
		},
		{`UPDATE docs SET part = ? WHERE id = ? OR id = 1`, `UPDATE s.index_docs AS docs SET part = $1 WHERE docs.tenant = 'it''s' AND ( id = $2 OR id = 1)`},
		{`UPDATE docs SET part = (SELECT 1 FROM docs WHERE id = 1)`, `UPDATE s.index_docs AS docs SET part = (SELECT 1 FROM ` + docs + ` docs WHERE id = 1) WHERE docs.tenant = 'it''s'`},
		{`DELETE FROM docs`, `DELETE FROM s.index_docs AS docs WHERE docs.tenant = 'it''s'`},
		{`DELETE FROM docs WHERE id IN (SELECT 1)`, `DELETE FROM s.index_docs AS docs WHERE docs.tenant = 'it''s' AND ( id IN (SELECT 1))`},
		{`INSERT INTO docs (id, n) VALUES (?, f(?)), (?, ?)`, `INSERT INTO s.index_docs AS docs (tenant, id, n) VALUES ('it''s', $1, f($2)), ('it''s', $3, $4)`},
		{
			`INSERT INTO terms (term, df) VALUES (?, ?) ON CONFLICT (term) DO UPDATE SET df = terms.df + (excluded.df)`,
			`INSERT INTO s.index_terms AS terms (tenant, term, df) VALUES ('it''s', $1, $2) ON CONFLICT (tenant, term) DO UPDATE SET df = terms.df + (excluded.df)`,
		},
		{`INSERT INTO stale (session) SELECT id >> 32 FROM docs WHERE id = ? ON CONFLICT (session) DO NOTHING`, `INSERT INTO s.index_stale AS stale (tenant, session) SELECT 'it''s', id >> 32 FROM ` + docs + ` docs WHERE id = $1 ON CONFLICT (tenant, session) DO NOTHING`},
	} {
		tr := newTranslator(func(s string) string { return "s." + s[len("coppice."):] }, "it's")
		if got := tr.translate(c.query).text; got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.query, got, c.want)
		}
	}
}
