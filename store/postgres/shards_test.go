package postgres

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The tables can be spread over servers, by log and by blob: every key begins with what they are
// spread by, and nothing in one row needs another server.
func TestSchemaCanBeSpread(t *testing.T) {
	t.Parallel()
	keys := map[string]string{
		"logs": "tenant, log", "lines": "tenant, log", "refs": "tenant, log", "drafts": "tenant, log",
		"blobs": "tenant, ref", "notes": "tenant, room, name", "gates": "tenant, gate",
		"members": "role, tenant", "blob_backends": "place", // which every server has
	}
	var all strings.Builder
	for _, m := range migrations() {
		all.WriteString(m.statements)
	}
	text := regexp.MustCompile(`(?m)--.*$`).ReplaceAllString(all.String(), "")
	tables := regexp.MustCompile(`(?s)CREATE TABLE coppice\.(\w+) \((.*?)\n\)`).FindAllStringSubmatch(text, -1)
	if len(tables) < len(keys) {
		t.Fatalf("the schema has %d tables", len(tables))
	}
	for _, table := range tables {
		name, columns := table[1], table[2]
		want, known := keys[name]
		key := regexp.MustCompile(`PRIMARY KEY \(([^)]*)\)`).FindStringSubmatch(columns)
		if key == nil { // a column
			key = regexp.MustCompile(`(\w+)\s+\w+\s+PRIMARY KEY`).FindStringSubmatch(columns)
		}
		if !known || key == nil || key[1] != want && !strings.HasPrefix(key[1], want+", ") {
			t.Errorf("the key of %s is %q, want one that begins with %q", name, key, want)
		}
	}
	for _, unwanted := range []string{"REFERENCES", "FOREIGN KEY", "SEQUENCE", "SERIAL", "IDENTITY", "NEXTVAL", "CREATE TRIGGER", "UNIQUE"} {
		if strings.Contains(strings.ToUpper(text), unwanted) {
			t.Errorf("the schema has %s", unwanted)
		}
	}
}

// Every statement says which tenant it is for, and which log or blob: it goes to one server. Those
// that go to all of them are listed here, with who needs them.
func TestStatementsGoToOneServer(t *testing.T) {
	t.Parallel()
	everywhere := map[string]string{
		"SELECT DISTINCT name":                          "the index, for what has changed",
		"SELECT log, slot, name, life, tail":            "lists of all logs, and of the trash",
		"SELECT count(*), coalesce(bool_or":             "max_sessions",
		"SELECT log, life, name, touched":               "repair, for drafts that were left behind",
		"SELECT log, life, tail FROM":                   "watchers, twice a second",
		"SELECT r.log, r.life, coalesce(l.slot":         "deleting a blob: who names it",
		"SELECT ref, size FROM coppice.blobs":           "lists of all blobs",
		"SELECT DISTINCT ref FROM coppice.refs":         "the same, for those that nobody names",
		"WITH free AS":                                  "appends that travel together, without appends=single",
		"SELECT coalesce(max(version), 0)":              "opening a store: the versions, which every server has",
		"CREATE TABLE IF NOT EXISTS coppice.versions":   "migrate",
		"GRANT SELECT ON coppice.versions":              "migrate",
		"INSERT INTO coppice.versions":                  "migrate",
		"SELECT room, name, data, modified":             "lists of all notes",
		"SELECT name, octet_length(data)::bigint, modi": "lists of the notes of a room",
	}
	used := make(map[string]bool)
	table := regexp.MustCompile(`coppice\.(logs|lines|refs|drafts|blobs|notes|gates|versions|members)\b`)
	eachLiteral(t, func(file, sql string) {
		if strings.Contains(sql, "pg_advisory") && file != "migrate.go" {
			t.Errorf("%s takes an advisory lock, which is one of a single server: %s", file, sql)
		}
		if !table.MatchString(sql) {
			return
		}
		for begin := range everywhere {
			if strings.HasPrefix(strings.TrimSpace(sql), begin) {
				used[begin] = true
				return
			}
		}
		if !strings.Contains(sql, "tenant") || !strings.Contains(sql, "$1") {
			t.Errorf("%s: no tenant in %s", file, sql)
		}
		for _, name := range table.FindAllStringSubmatch(sql, -1) {
			if by := shardedBy[name[1]]; !regexp.MustCompile(by).MatchString(sql) {
				t.Errorf("%s: %s is not asked by %s in %s", file, name[1], by, sql)
			}
		}
	})
	for begin := range everywhere {
		if !used[begin] {
			t.Errorf("no statement begins with %q any more", begin)
		}
	}
}

// shardedBy is what a statement on a table has to contain. A row that is inserted has it anyway.
var shardedBy = map[string]string{
	"logs": `\blog = \$2|\(tenant, log,`, "lines": `\blog = \$2|\(tenant, log,`, "refs": `\blog = \$2|\(tenant, log,`, "drafts": `\blog = \$2|\(tenant, log,`,
	"blobs": `\bref = \$2|\(tenant, ref,`, "notes": `room = \$2 AND name = \$3|\(tenant, room, name,`, "gates": `gate = \$2|\(tenant, gate\)`,
}

// eachLiteral gives the strings of the package's files, with those that are put together as one.
func eachLiteral(t *testing.T, give func(file, text string)) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	constants := make(map[string]string)
	var trees []*ast.File
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil {
			t.Fatal(err)
		}
		trees = append(trees, tree)
	}
	var text func(e ast.Expr) string
	text = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			value, _ := strconv.Unquote(e.Value)
			return value
		case *ast.Ident:
			return constants[e.Name]
		case *ast.BinaryExpr:
			return text(e.X) + text(e.Y)
		}
		return ""
	}
	for range 2 { // a constant may be used before it is declared
		for _, tree := range trees {
			ast.Inspect(tree, func(n ast.Node) bool {
				if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == 1 && len(v.Values) == 1 {
					constants[v.Names[0].Name] = text(v.Values[0])
				}
				return true
			})
		}
	}
	parts := map[string]bool{constants["moveEnd"]: true, constants["insertAppended"]: true} // of statements
	for i, tree := range trees {
		ast.Inspect(tree, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			found := text(e)
			if found == "" {
				return true
			}
			if !parts[found] {
				give(files[i], found)
			}
			return false // not its parts again
		})
	}
}
