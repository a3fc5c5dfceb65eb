//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/transcript"
)

// Copies are killed at some moment, again and again, until one gets through: from files to files,
// to a database and back. Then each home has the same, also after a redaction, and importing the
// same files again brings nothing. The moments are random.
func TestKilledCopy(t *testing.T) {
	t.Parallel()
	h := &house{T: t, token: aToken(6), password: "kX9#mQ2$vL", cache: t.TempDir(), sources: t.TempDir(), dir: filepath.Join(t.TempDir(), "sessions")}
	h.several(20)
	h.plantSources()
	h.do([]int{0, exitPartial}, "import", h.sources)
	h.do([]int{0}, "rm", "s3", "s4")
	h.do([]int{0}, "tag", "s5", "+garden")
	h.do([]int{0}, "archive", "s6")
	h.long("s7")
	database := postgrestest.URL(t)
	homes := []string{filepath.Join(t.TempDir(), "copy"), database, filepath.Join(t.TempDir(), "back")}
	sources := []string{h.dir, h.dir, database}
	was := h.contents(h.dir)
	for i, to := range homes {
		h.copyKilled(sources[i], to)
		h.sameContents(was, h.contents(to))
	}
	if !h.holds(database) {
		t.Error("the secret was not copied: the test shows nothing")
	}
	h.do([]int{0, exitPartial}, "redact", "--all", "--apply")
	was = h.contents(h.dir)
	for i, to := range homes {
		said := h.copyKilled(sources[i], to)
		h.sameContents(was, h.contents(to))
		if h.holds(to) && !strings.Contains(said, "may still have a secret") { // which a killed writer was about to write
			t.Errorf("a secret that was redacted in the original is in the copy, which says %s", said)
		}
	}
	h.do([]int{0, exitPartial}, "--dir", database, "import", h.sources)
	is := h.contents(database)
	for name := range was {
		if strings.HasPrefix(name, "note ") {
			is[name] = was[name] // when a file was last read
		}
	}
	maps.DeleteFunc(is, func(name, _ string) bool { return was[name] == "" && strings.HasPrefix(name, "note ") })
	h.sameContents(was, is)
}

// copyKilled copies, and kills some of the programs that do. It returns what the last one says.
func (h *house) copyKilled(from, to string) string {
	h.Helper()
	killed, rng := 0, soak.Rand(h.T)
	for kill := range soak.N(2) {
		cmd := exec.Command("coppice", "copy", "--from", from, "--to", to)
		cmd.Env = append(os.Environ(), "COPPICE_SYNC=never", "HOME="+h.cache, "XDG_CACHE_HOME="+h.cache)
		h.must(cmd.Start())
		time.Sleep(time.Duration(rng.Int64N(int64(time.Duration(kill+1) * 80 * time.Millisecond))))
		_ = cmd.Process.Kill()
		if cmd.Wait() != nil {
			killed++
		}
	}
	h.Logf("%d were killed before their end", killed)
	said := h.do([]int{0, exitPartial}, "copy", "--from", from, "--to", to)
	if strings.Contains(said, "conflict") || strings.Contains(said, "not copied") {
		h.Error(said)
	}
	return said
}

// long makes a session longer than what is copied at once.
func (h *house) long(name string) {
	h.Helper()
	s, err := session.Open(h.Context(), openStore(h.T, h.dir), name, nil)
	h.must(err)
	for n := range 60 {
		_, err = s.AppendMessage(session.RoleUser, []session.Content{session.Text(strings.Repeat(fmt.Sprint("word ", n), 15000))})
		h.must(err)
	}
	h.must(s.Close())
}

// contents returns the logs, the trash, the notes about imports and the blobs that are named.
func (h *house) contents(where string) map[string]string {
	h.Helper()
	st := h.storeOf(where)
	defer st.Close()
	all := make(map[string]string)
	trash, err := st.Trash().Read()
	h.must(err)
	defer trash.Close()
	for i, logs := range []store.Store{st, trash} {
		names, err := store.Names(h.Context(), logs)
		h.must(err)
		for _, name := range names {
			log, err := logs.Open(h.Context(), name)
			h.must(err)
			var text bytes.Buffer
			for line, err := range log.Forward(h.Context(), 0) {
				h.must(err)
				text.Write(append(line.Data, '\n'))
				store.EachRef(line.Data, func(ref store.Ref) {
					if data, err := st.Blobs().Get(h.Context(), ref); err == nil {
						all[string(ref)] = string(data)
					}
				})
			}
			h.must(log.Close())
			all[fmt.Sprint(i, " ", name)] = text.String()
		}
	}
	notes := st.Notes(transcript.LedgerRoom)
	list, err := notes.List(h.Context())
	h.must(err)
	for _, n := range list {
		data, err := notes.Read(h.Context(), n.Name)
		h.must(err)
		all["note "+n.Name] = string(data)
	}
	return all
}

func (h *house) storeOf(where string) store.Store {
	h.Helper()
	opened, err := home.Open(h.Context(), where, nil)
	h.must(err)
	return opened.Store()
}

func (h *house) sameContents(was, is map[string]string) {
	h.Helper()
	for name := range maps.Keys(was) {
		if is[name] != was[name] {
			h.Errorf("%s has %d bytes in the copy, %d in the original, and differs", name, len(is[name]), len(was[name]))
		}
	}
	if len(is) > len(was) {
		h.Errorf("the copy has %d parts, the original %d", len(is), len(was))
	}
}

// holds reports whether a secret is anywhere in a home.
func (h *house) holds(where string) bool {
	h.Helper()
	st := h.storeOf(where)
	defer st.Close()
	for p, err := range st.Parts().All(h.Context()) {
		h.must(err)
		if p.Kind != store.PartLog && p.Kind != store.PartCopy && p.Kind != store.PartBlob && p.Kind != store.PartNote {
			continue
		}
		r, err := st.Parts().Open(h.Context(), p)
		h.must(err)
		data, err := io.ReadAll(r)
		h.must(err)
		h.must(r.Close())
		if strings.Contains(string(data), h.token) {
			return true
		}
	}
	return false
}
