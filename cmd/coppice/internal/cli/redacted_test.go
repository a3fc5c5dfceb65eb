package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/index/sqlite"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// aToken makes a secret: none that looks real may stand in the source.
func aToken(seed uint64) string {
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	r := rand.New(rand.NewPCG(seed, 7))
	b := []byte("ghp_")
	for range 36 {
		b = append(b, alphabet[r.IntN(len(alphabet))])
	}
	return string(b)
}

// house is a store, the cache of its user, and sources to import, all of them full
// of secrets.
type house struct {
	*testing.T
	dir, cache, sources string
	token, password     string
}

func newHouse(t *testing.T) *house {
	base := t.TempDir()
	h := &house{t, filepath.Join(base, "sessions"), filepath.Join(base, "cache"), filepath.Join(base, "sources"), aToken(1), "kX9#mQ2$vL"}
	h.plantSources()
	return h
}

func (h *house) app() (*app, *bytes.Buffer) {
	var out bytes.Buffer
	env := map[string]string{"HOME": h.cache, "XDG_CACHE_HOME": h.cache, "COPPICE_HOME": h.dir, "NO_COLOR": "1", "COPPICE_SYNC": "never", "COPPICE_BLOB_THRESHOLD": "300"}
	getenv := func(name string) string { return env[name] }
	return &app{talk: newTalk(&out, &out, getenv), stdin: strings.NewReader(""), getenv: getenv}, &out
}

// do runs a command, which must end in one of some ways.
func (h *house) do(codes []int, args ...string) string {
	h.Helper()
	a, out := h.app()
	code := a.run(context.Background(), args)
	for _, want := range codes {
		if code == want {
			return out.String()
		}
	}
	h.Fatalf("coppice %q: exit code %d\n%s", args, code, out)
	return ""
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

var planted = regexp.MustCompile(`("(?:text|content|title|cwd|message|command|output|input_text|prompt|value)"\s*:\s*")`)

// plantSources copies the transcripts that the formats are tested with, and puts
// secrets into every text of them.
func (h *house) plantSources() {
	h.Helper()
	files, err := filepath.Glob("../../../../transcript/format/testdata/*")
	h.must(err)
	if len(files) == 0 {
		h.Fatal("there are no transcripts to put secrets into")
	}
	for _, root := range files {
		n := 0
		h.must(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			ext := filepath.Ext(path)
			if err != nil || d.IsDir() || ext != ".json" && ext != ".jsonl" && ext != ".md" || n == 2 {
				return err
			}
			n++
			text, err := os.ReadFile(path)
			h.must(err)
			place := filepath.Join(h.sources, strings.TrimPrefix(path, "../../../../transcript/format/testdata"))
			h.must(os.MkdirAll(filepath.Dir(place), 0o700))
			text = planted.ReplaceAll(text, []byte("${1}DB_PASSWORD="+strings.ReplaceAll(h.password, "$", "$$")+" bare "+strings.ReplaceAll(h.password, "$", "$$")+" and "+h.token+" "))
			if ext == ".md" {
				text = append(text, "\n#### use "+h.token+"\n\nDB_PASSWORD="+h.password+"\n"...)
			}
			return os.WriteFile(place, text, 0o600)
		}))
	}
	db, err := sql.Open("sqlite", filepath.Join(h.sources, "logs.db"))
	h.must(err)
	defer db.Close()
	for _, statement := range []string{
		`CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT)`,
		`CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, prompt_json TEXT, options_json TEXT, response TEXT, response_json TEXT, conversation_id TEXT, duration_ms INTEGER, datetime_utc TEXT)`,
		fmt.Sprintf(`INSERT INTO conversations VALUES ('c1', 'about %s', 'm')`, h.token),
		fmt.Sprintf(`INSERT INTO responses VALUES ('r1', 'm', 'use %s', NULL, NULL, '{}', 'DB_PASSWORD=%s', '{}', 'c1', 1, '2026-01-01T10:00:00')`, h.token, h.password),
	} {
		_, err := db.Exec(statement)
		h.must(err)
	}
}

// fill puts secrets into every room of the store.
func (h *house) fill() {
	h.Helper()
	ok, partly := []int{0}, []int{0, exitPartial}
	h.do(ok, "new", "--key", "mine", "--title", "about "+h.token, "--tag", h.password)
	id := strings.TrimSpace(h.do(ok, "ls", "--json"))
	id = regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(id)[1]
	h.do(ok, "append", id, "--role", "user", "DB_PASSWORD="+h.password)
	h.do(ok, "append", id, "--role", "assistant", strings.Repeat("a long line of text\n", 40)+h.token) // in a blob
	h.do(ok, "label", id, "leaf", "bare "+h.password)
	h.do(ok, "fork", id)
	h.do(partly, "import", h.sources)
	for i, name := range h.names() { // some of each
		switch i % 5 {
		case 0:
			h.do(ok, "archive", name)
		case 1:
			h.do(ok, "rm", "--link", name) // only this one: the names of the others come next
		case 2:
			data, err := os.ReadFile(filepath.Join(h.dir, name+".jsonl"))
			h.must(err)
			h.must(os.WriteFile(filepath.Join(h.dir, name+".jsonl.bak"), data, 0o600))
			h.must(os.WriteFile(filepath.Join(h.dir, name+".jsonl"), append(data, `{"type":"message","torn":"`+h.token...), 0o600))
		case 3:
			h.must(os.WriteFile(filepath.Join(h.dir, ".coppice", "tmp", name), []byte("left "+h.token), 0o600))
			old := time.Now().Add(-2 * time.Hour)
			h.must(os.Chtimes(filepath.Join(h.dir, ".coppice", "tmp", name), old, old))
		}
	}
	h.do(ok, "search", "bare") // the index beside the sessions
	h.cacheIndex()
}

// cacheIndex makes the index that is used where one may not write to the store.
func (h *house) cacheIndex() {
	a, _ := h.app()
	cache := filepath.Join(a.getenv("HOME"), ".cache")
	if dir := a.getenv("XDG_CACHE_HOME"); dir != "" {
		cache = dir
	}
	st, err := file.Open(h.dir, nil)
	h.must(err)
	sum := sha256.Sum256([]byte(st.Where()))
	room, err := sqlite.Open(h.Context(), filepath.Join(cache, "coppice", hex.EncodeToString(sum[:8])+".db"), nil)
	h.must(err)
	ix := index.New(st, room, nil)
	_, err = ix.CatchUp(h.Context(), nil)
	h.must(errors.Join(err, ix.Close(), st.Close()))
}

func (h *house) names() []string {
	st, err := file.Open(h.dir, nil)
	h.must(err)
	defer st.Close()
	var names []string
	for stat, err := range st.List(h.Context()) {
		h.must(err)
		names = append(names, stat.Name)
	}
	return names
}

var keptBase64 = regexp.MustCompile(`"data":"([A-Za-z0-9+/=]{8,})"`)

// has returns where below the store and the cache a secret is, by any of its parts.
func (h *house) has() []string {
	h.Helper()
	dec, err := zstd.NewReader(nil)
	h.must(err)
	defer dec.Close()
	var found []string
	look := func(path string, data []byte) {
		if plain, err := dec.DecodeAll(data, nil); err == nil {
			data = plain
		}
		for _, m := range keptBase64.FindAllSubmatch(data, -1) {
			packed, _ := base64.StdEncoding.DecodeString(string(m[1]))
			if plain, err := dec.DecodeAll(packed, nil); err == nil {
				data = append(data, plain...)
			}
		}
		lower := bytes.ToLower(data)
		for _, s := range []string{h.token[6:20], h.token[20:34], h.password} {
			if bytes.Contains(lower, []byte(strings.ToLower(s))) {
				found = append(found, fmt.Sprintf("%s (%s…)", path, s[:6]))
			}
		}
	}
	for _, dir := range []string{h.dir, h.cache} {
		h.must(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			look(path, data)
			if bytes.HasPrefix(data, []byte("SQLite format 3")) {
				look(path+" as a database", h.dump(path))
			}
			return err
		}))
	}
	return found
}

// dump returns what the tables of a database hold.
func (h *house) dump(path string) []byte {
	h.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	h.must(err)
	defer db.Close()
	rows, err := db.Query(`SELECT name FROM sqlite_master WHERE type = 'table'`)
	h.must(err)
	var tables []string
	for rows.Next() {
		var name string
		h.must(rows.Scan(&name))
		tables = append(tables, name)
	}
	h.must(errors.Join(rows.Err(), rows.Close()))
	var all bytes.Buffer
	for _, table := range tables {
		rows, err := db.Query(`SELECT * FROM "` + table + `"`)
		if err != nil {
			continue // a virtual table that cannot be read so
		}
		columns, err := rows.Columns()
		h.must(err)
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(sql.RawBytes)
			}
			h.must(rows.Scan(values...))
			for _, v := range values {
				all.Write(*v.(*sql.RawBytes))
				all.WriteByte('\n')
			}
		}
		h.must(rows.Close())
	}
	return all.Bytes()
}

// Secrets stand in everything that a store has, in every form. They are redacted,
// and work goes on: none of them ever comes back.
func TestRedactedStaysRedacted(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ok, partly, any := []int{0}, []int{0, exitPartial}, []int{0, 1, 2, exitPartial, exitNotFound, exitCorrupt, exitConflict}
	h.fill()
	found := h.has()
	if len(found) < 50 {
		t.Fatalf("the secrets are only in %v", found)
	}
	t.Logf("secrets in %d files and databases, %d sessions", len(found), len(h.names()))
	handle := openAll(t, h.dir, h.names()[2], nil)
	if _, err := handle.GetTree(); err != nil {
		t.Fatal(err)
	}
	out := h.do(ok, "redact", "--all", "--apply", "--json")
	if !strings.Contains(out, `"left":[]`) {
		t.Errorf("the receipt says %.2000s", out)
	}
	check := func(after string) {
		t.Helper()
		if found := h.has(); len(found) > 0 {
			t.Errorf("after %s it is in %d places: %.3000v", after, len(found), found)
		}
	}
	check("redact")
	h.do(partly, "import", h.sources)
	h.do(partly, "import", "--again", h.sources)
	check("importing again")
	if _, err := handle.Fork(t.Context(), openStore(t, h.dir), nil); !errors.Is(err, session.ErrReplaced) {
		t.Errorf("forking from an old handle: %v", err)
	}
	for i, name := range h.names() {
		switch i % 4 {
		case 0:
			h.do(ok, "rm", "--link", name) // only this one: the names of the others come next
		case 1:
			h.do(any, "unarchive", name)
		case 2:
			h.do(any, "export", name, "--to", "anthropic", "--force", "-o", filepath.Join(h.cache, name+".out"))
		}
	}
	h.must(os.RemoveAll(filepath.Join(h.dir, ".coppice", "imports")))
	h.do(partly, "import", h.sources)
	check("removing, and importing without a ledger")
	// The programs go on: documents are rewritten, lines are added.
	h.must(filepath.WalkDir(h.sources, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) == ".db" {
			return err
		}
		text, err := os.ReadFile(path)
		h.must(err)
		return os.WriteFile(path, bytes.ReplaceAll(text, []byte(" and "+h.token), []byte(" changed, and "+h.token)), 0o600)
	}))
	h.do(partly, "import", h.sources)
	check("importing what was rewritten")
	h.do(ok, "search", "bare")
	h.cacheIndex()
	for _, line := range strings.Split(strings.TrimSpace(h.do(ok, "trash", "ls", "--json")), "\n") {
		if m := regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(line); m != nil {
			h.do(any, "trash", "restore", m[1])
		}
	}
	h.do([]int{0, exitCorrupt}, "fsck")
	check("everything")
	if out := h.do(any, "search", h.token); strings.Contains(out, h.token[6:]) && !strings.Contains(out, "no ") {
		t.Errorf("searching finds %.500s", out)
	}
}

func openStore(t *testing.T, dir string) *file.Store {
	t.Helper()
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}
