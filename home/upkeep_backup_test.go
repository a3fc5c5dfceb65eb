package home_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/upkeep"
)

const backupSecret = "kX9#mQ2$vL"

// Random homes, with chains, forks, blobs, archives, trash, tags, redactions and the
// fixtures of all formats, are backed up, in two ways and while they grow, and restored
// elsewhere. There they are the same, whatever one asks.
func TestBackupIsTheSameHome(t *testing.T) {
	t.Parallel()
	fixtures := transcripts(t)
	for n := range 3 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			h := &house{T: t, dir: filepath.Join(t.TempDir(), "sessions")}
			h.Home = h.open(&home.Options{Create: true, Settings: settings(t, env{"HOME": t.TempDir(), "COPPICE_SYNC": "never"})})
			b := &builder{house: h, rng: soak.Rand(t)}
			dir := filepath.Join(t.TempDir(), "backup")
			b.steps(15)
			b.imports(fixtures, n)
			b.backup(dir) // what is backed up later adds to this
			b.steps(15)
			b.redact()
			b.steps(5)
			for _, to := range []string{dir, dir + ".tar.zst"} {
				b.backup(to)
				b.same(b.restored(to))
			}
		})
	}
}

// transcripts returns the fixtures of the formats.
func transcripts(t *testing.T) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir("../transcript/format", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(path, "testdata") && filepath.Ext(path) != ".txt" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) < 50 {
		t.Fatalf("%d fixtures, %v", len(paths), err)
	}
	return paths
}

// builder makes a random home.
type builder struct {
	*house
	rng   *rand.Rand
	names []string
	n     int
	clean bool // secrets were redacted, and none come any more
}

func (b *builder) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// steps does random things. Some of them do not make sense for the session that they
// are done to; then nothing happens.
func (b *builder) steps(n int) {
	b.Helper()
	ctx := b.Context()
	for range n {
		b.n++
		if len(b.names) < 3 || b.rng.IntN(4) == 0 {
			b.create(!b.clean && b.rng.IntN(3) == 0)
			continue
		}
		name := b.names[b.rng.IntN(len(b.names))]
		switch b.rng.IntN(11) {
		case 0:
			_, _ = b.Sessions.Archive(ctx, home.ArchiveRequest{Session: name, Link: true})
		case 1:
			_, _ = b.Sessions.Remove(ctx, home.RemoveRequest{Session: name, Link: true})
		case 2:
			_, _ = b.Upkeep.Restore(ctx, home.RestoreRequest{Session: name})
		case 3:
			_, _ = b.Sessions.Tag(ctx, home.TagRequest{Session: name, Add: []string{fmt.Sprint("tag", b.n%5)}})
		case 4:
			_, _ = b.Sessions.Pin(ctx, home.PinRequest{Session: name, Pinned: true})
		case 5:
			_, _ = b.Sessions.Rename(ctx, home.RenameRequest{Session: name, Name: fmt.Sprint("garden number ", b.n)})
		case 6:
			if f, err := b.Sessions.Fork(ctx, home.ForkRequest{Session: name, Link: true}); err == nil {
				b.names = append(b.names, f.Session)
			}
		case 7:
			b.chain(name)
		case 8:
			_, _ = b.Entries.Compact(ctx, home.CompactRequest{Session: name, Summary: "we talked about the garden", KeepTokens: new(int)})
		default:
			_, _ = b.Entries.Append(ctx, home.AppendRequest{Session: name, Message: &session.MessageEntry{
				Role: session.RoleUser, Content: []session.Content{session.Text(fmt.Sprint("and what about tree ", b.n))},
			}})
		}
	}
}

// create makes a session with a call whose result is in a blob, as some others' are, and with
// or without a secret.
func (b *builder) create(secret bool) {
	b.Helper()
	header := session.Header{ID: fmt.Sprint("session-", b.n), CWD: fmt.Sprint("/work/", b.n%3)}
	s, err := session.Create(b.Context(), b.Store(), header, &session.Options{BlobThreshold: 300})
	b.must(err)
	defer s.Close()
	texts := []string{fmt.Sprint("water the garden ", b.n)}
	if secret {
		texts = append(texts, "DB_PASSWORD="+backupSecret)
	}
	for _, text := range texts {
		_, err = s.AppendMessage(session.RoleUser, []session.Content{session.Text(text)})
		b.must(err)
	}
	_, err = s.AppendMessage(session.RoleAssistant, []session.Content{session.ToolUse("c", "read", nil)})
	b.must(err)
	_, err = s.AppendMessage(session.RoleTool, []session.Content{session.ToolResult("c", strings.Repeat(fmt.Sprintf("row %d\n", b.n%4), 100), false)})
	b.must(err)
	b.names = append(b.names, s.ID())
}

func (b *builder) chain(name string) {
	b.Helper()
	s, err := session.Open(b.Context(), b.Store(), name, nil)
	if err != nil {
		return // it is in the trash
	}
	defer s.Close()
	if next, err := s.Continue(); err == nil {
		b.names = append(b.names, next.ID())
		b.must(next.Close())
	}
}

// imports reads every third transcript.
func (b *builder) imports(paths []string, from int) {
	b.Helper()
	var some []string
	for i := from; i < len(paths); i += 3 {
		some = append(some, paths[i])
	}
	claude := writeText(b.T, filepath.Join(b.TempDir(), "c.jsonl"), claudeCode(from, "hello from Claude Code"))
	_, err := b.Transfer.Import(b.Context(), home.ImportRequest{Paths: append(some, claude)}, nil, nil)
	if home.KindOf(err) != home.KindPartial { // some are fixtures of damage
		b.must(err)
	}
}

func (b *builder) redact() {
	b.Helper()
	b.n++
	b.create(true)
	_, err := b.Upkeep.Redact(b.Context(), home.RedactRequest{All: true, Apply: true})
	b.must(err)
	b.clean = true
}

func (b *builder) backup(to string) {
	b.Helper()
	r, err := b.Upkeep.Backup(b.Context(), home.BackupRequest{To: to})
	if err != nil || len(r.Unread) > 0 {
		b.Fatalf("%+v, %v", r, err)
	}
	c, err := home.VerifyBackup(b.Context(), home.VerifyBackupRequest{Path: to}, nil)
	if err != nil || c.Files != r.Files || len(c.Damaged)+len(c.Missing) > 0 {
		b.Fatalf("%+v, %v", c, err)
	}
}

// restored makes a home of a backup, for a user with another home directory.
func (b *builder) restored(from string) *house {
	b.Helper()
	h := &house{T: b.T, dir: filepath.Join(b.TempDir(), "elsewhere", "sessions")}
	_, err := home.RestoreBackup(b.Context(), h.dir, home.RestoreBackupRequest{From: from}, nil)
	b.must(err)
	h.Home = h.open(&home.Options{})
	return h
}

// same compares two homes by what they answer.
func (b *builder) same(other *house) {
	b.Helper()
	want, got := b.answers(), other.answers()
	for i := range want {
		if diff := cmp.Diff(want[i], got[i]); diff != "" {
			b.Errorf("the homes differ (-home +restored):\n%.3000s", diff)
		}
	}
	// What was taken out of the home stays out of this one, too.
	id := strings.Fields(want[0])[0]
	_, err := other.Entries.Append(b.Context(), home.AppendRequest{Session: id, Message: &session.MessageEntry{
		Role: session.RoleUser, Content: []session.Content{session.Text("it was " + backupSecret)},
	}})
	b.must(err)
	if text, _ := os.ReadFile(other.Store().(store.Directory).Path(id)); strings.Contains(string(text), backupSecret) {
		b.Error("a secret that was redacted comes back")
	}
}

// answers asks everything that there is to ask. The first answer begins with the id of a
// session that can be written to.
func (h *house) answers() []string {
	h.Helper()
	ctx := h.Context()
	encode := func(v any, err error) string {
		h.Helper()
		text, encodeErr := json.MarshalIndent(v, "", " ")
		if err != nil || encodeErr != nil {
			h.Fatal(err, encodeErr)
		}
		return strings.ReplaceAll(string(text), h.Dir(), "HOME")
	}
	list, err := h.Sessions.List(ctx, home.ListRequest{Limit: -1, Links: true, All: true, Sort: "created"})
	if err == nil { // those that were created in the same millisecond have no order
		slices.SortFunc(list.Sessions, func(a, b home.SessionInfo) int { return strings.Compare(a.ID, b.ID) })
	}
	answers := []string{"", encode(list, err)}
	for _, s := range list.Sessions {
		c, err := h.Entries.Context(ctx, home.ContextRequest{Session: s.ID, Link: true})
		answers = append(answers, encode(c, err))
		if strings.HasPrefix(s.ID, "session-") {
			answers[0] = s.ID
		}
	}
	for _, query := range []string{"garden", "row", "tag1", "hello", "REDACTED", "DB_PASSWORD"} {
		found, err := h.Search.Find(ctx, home.FindRequest{Query: query, Limit: -1})
		for i := range found.Hits {
			found.Hits[i].Score = 0 // and the order: an index that grew also weighs words that are gone
		}
		slices.SortFunc(found.Hits, func(a, b home.Hit) int {
			return strings.Compare(a.Session+a.Entry+a.Kind+a.Snippet, b.Session+b.Entry+b.Kind+b.Snippet)
		})
		answers = append(answers, encode(found, err))
	}
	stats, err := h.Search.Stats(ctx, home.StatsRequest{TimeZone: "UTC"})
	if err == nil {
		stats.Topics = nil // which it chooses by that weight
	}
	answers = append(answers, encode(stats, err))
	trash, err := h.Upkeep.Trash(ctx, home.TrashRequest{})
	answers = append(answers, encode(trash, err))
	var findings []upkeep.Finding
	_, err = h.Upkeep.Check(ctx, home.CheckRequest{}, func(f upkeep.Finding) error {
		if f.Kind != string(store.FaultLock) { // which is no part of a backup
			findings = append(findings, f)
		}
		return nil
	})
	return append(answers, encode(findings, err))
}
