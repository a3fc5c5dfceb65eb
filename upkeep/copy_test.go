package upkeep_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/upkeep"
)

// opener opens a new, empty store.
type opener func(t *testing.T) store.Store

func inFiles(t *testing.T) store.Store {
	st, err := file.Open(t.TempDir()+"/s", &file.Options{Sync: file.Never})
	must(t, err)
	t.Cleanup(func() { st.Close() })
	return st
}

func inMemory(*testing.T) store.Store { return memory.New(nil) }

// betweenStores runs a test from files to each kind of store, and from each kind to files.
func betweenStores(t *testing.T, run func(t *testing.T, from, to store.Store)) {
	t.Parallel()
	kinds := map[string]opener{"files": inFiles, "memory": inMemory}
	if inDatabase != nil {
		kinds["postgres"] = inDatabase
	}
	for name, open := range kinds {
		t.Run("files to "+name, func(t *testing.T) { run(t, inFiles(t), open(t)) })
		if name != "files" {
			t.Run(name+" to files", func(t *testing.T) { run(t, open(t), inFiles(t)) })
		}
	}
}

const room = "imports"

func mustCopy(t *testing.T, from, to store.Store) *upkeep.CopyResult {
	t.Helper()
	did, err := upkeep.Copy(t.Context(), from, to, upkeep.CopyRequest{Rooms: []string{room}})
	must(t, err)
	return did
}

// snapshot is everything in a store that a copy has, too, by its name.
func snapshot(t *testing.T, st store.Store) map[string]string {
	t.Helper()
	all := make(map[string]string)
	lines := func(kind string, st store.Store) {
		names, err := store.Names(t.Context(), st)
		must(t, err)
		for _, name := range names {
			log, err := st.Open(t.Context(), name)
			must(t, err)
			var text bytes.Buffer
			for line, err := range log.Forward(t.Context(), 0) {
				must(t, err)
				text.Write(append(line.Data, '\n'))
			}
			must(t, log.Close())
			all[kind+" "+name] = text.String()
		}
	}
	lines("log", st)
	trash, err := st.Trash().Read()
	must(t, err)
	lines("removed", trash)
	must(t, trash.Close())
	for ref, err := range st.Blobs().All(t.Context()) {
		must(t, err)
		data, err := st.Blobs().Get(t.Context(), ref)
		must(t, err)
		all["blob "+string(ref)] = string(data)
	}
	notes, err := st.Notes(room).List(t.Context())
	must(t, err)
	for _, n := range notes {
		data, err := st.Notes(room).Read(t.Context(), n.Name)
		must(t, err)
		all["note "+n.Name] = string(data)
	}
	return all
}

// everywhere is all that a store keeps, to look for a secret in.
func everywhere(t *testing.T, st store.Store) string {
	t.Helper()
	var text strings.Builder
	for p, err := range st.Parts().All(t.Context()) {
		must(t, err)
		if p.Kind == store.PartOther {
			continue
		}
		r, err := st.Parts().Open(t.Context(), p)
		if errors.Is(err, store.ErrNotExist) {
			continue
		}
		must(t, err)
		data, err := io.ReadAll(r)
		must(t, err)
		must(t, r.Close())
		text.Write(data)
	}
	return text.String()
}

func wantSame(t *testing.T, from, to store.Store) {
	t.Helper()
	if diff := cmp.Diff(snapshot(t, from), snapshot(t, to)); diff != "" {
		t.Errorf("the copy differs (-original +copy):\n%s", diff)
	}
}

// furnish gives a store some of everything.
func furnish(t *testing.T, st store.Store) {
	t.Helper()
	ref, err := st.Blobs().Put(t.Context(), []byte(strings.Repeat("output of a tool\n", 100)))
	must(t, err)
	kept, err := st.Blobs().Put(t.Context(), []byte("kept by an import"))
	must(t, err)
	for i := range 30 {
		write(t, st, fmt.Sprint("s", i), message("1", "null", "user", text(fmt.Sprint("hello ", i)), ""),
			`{"type":"tags","id":"2","parent_id":"1","timestamp":"2026-05-01T10:01:00Z","tags":["a","b"]}`)
	}
	write(t, st, "odd", "", "not JSON at all", "{\"type\":\"later\"}   ", message("1", "null", "tool", fmt.Sprintf(`{"type":"tool_result","tool_result":{"tool_use_id":"c","blob":%q}}`, ref), ""))
	long := []string{}
	for i := range 1200 { // two chunks
		long = append(long, message(fmt.Sprint(i), "null", "user", text(strings.Repeat(fmt.Sprint(i, " "), 1000)), ""))
	}
	write(t, st, "long", long...)
	for _, name := range []string{"gone", "s3", "s3"} {
		if name == "gone" {
			write(t, st, name, message("1", "null", "user", text(token(1)), ""))
		}
		must(t, st.Remove(t.Context(), name))
		if name == "s3" {
			write(t, st, name, message("1", "null", "user", text("again"), ""))
		}
	}
	must(t, st.Notes(room).Write(t.Context(), "one.json", fmt.Appendf(nil, `{"sessions":["s1"],"blob":%q}`, kept)))
	must(t, st.Notes(room).Write(t.Context(), "two.json", []byte(`{"sessions":["s2","s4"]}`)))
	if archiver, ok := store.As[store.Archiver](st); ok {
		must(t, archiver.Archive(t.Context(), "s5"))
	}
}

func TestCopy(t *testing.T) {
	betweenStores(t, func(t *testing.T, from, to store.Store) {
		furnish(t, from)
		did := mustCopy(t, from, to)
		if did.Created != 32 || did.Sessions != 32 || did.Trashed != 3 || did.Notes != 2 || did.Blobs != 2 || len(did.Conflicts)+len(did.Failed) > 0 {
			t.Errorf("copied %+v", did)
		}
		wantSame(t, from, to)
		// Once more, there is nothing to do.
		did = mustCopy(t, from, to)
		if did.Same != 32 || did.Size != 0 || did.Created+did.Continued+did.Redacted+did.Trashed+did.Removed+did.Notes > 0 {
			t.Errorf("then copied %+v", did)
		}
		// What is new is copied, and what was removed is removed.
		log, err := from.Open(t.Context(), "s1")
		must(t, err)
		end, err := log.End(t.Context())
		must(t, err)
		_, err = log.Append(t.Context(), end, []byte(message("9", "1", "user", hello, "")))
		must(t, err)
		must(t, log.Close())
		write(t, from, "new", message("1", "null", "user", hello, ""))
		must(t, from.Remove(t.Context(), "s7"))
		did = mustCopy(t, from, to)
		if did.Created != 1 || did.Continued != 1 || did.Removed != 1 || did.Trashed != 0 || did.Same != 30 {
			t.Errorf("at last copied %+v", did)
		}
		was, is := snapshot(t, from), snapshot(t, to)
		for name, text := range was {
			if is[name] != text {
				t.Errorf("%s differs", name)
			}
		}
		if _, there := is["log s7"]; there {
			t.Error("a removed session is still there")
		}
		if a, ok := store.As[store.Archiver](from); ok && a != nil {
			if _, ok := store.As[store.Archiver](to); ok {
				if stat, err := to.Stat(t.Context(), "s5"); err != nil || !stat.Archived {
					t.Errorf("the copy of an archived session is not archived: %+v, %v", stat, err)
				}
			}
		}
	})
}

// A session that has changed in the copy is left alone, and so are the notes that say what it has.
// A damaged session is copied as it is, and named.
func TestCopyNamesDamage(t *testing.T) {
	betweenStores(t, func(t *testing.T, from, to store.Store) {
		write(t, from, "whole", message("a", "null", "user", hello, ""), "")
		write(t, from, "hurt", "nonsense", message("a", "null", "user", hello, ""))
		hurt := func(did *upkeep.CopyResult) string {
			var all []string
			for _, f := range did.Damaged {
				all = append(all, f.Session+": "+f.Why)
			}
			return strings.Join(all, "; ")
		}
		if got := hurt(mustCopy(t, from, to)); !strings.HasPrefix(got, "hurt: 1 line of it cannot be read") {
			t.Errorf("damaged: %q", got)
		}
		log, err := from.Open(t.Context(), "hurt")
		must(t, err)
		end, err := log.End(t.Context())
		must(t, err)
		_, err = log.Append(t.Context(), end, []byte(strings.TrimSuffix(message("b", "a", "user", hello, ""), "}}")+"#}"), []byte(message("c", "b", "user", hello, "")))
		must(t, errors.Join(err, log.Close()))
		if got := hurt(mustCopy(t, from, to)); !strings.HasPrefix(got, "hurt: 1 line of it cannot be read") {
			t.Errorf("damaged since: %q", got)
		}
		if got := hurt(mustCopy(t, from, to)); got != "" {
			t.Errorf("damaged, with nothing new: %q", got)
		}
	})
}

func TestCopyConflict(t *testing.T) {
	betweenStores(t, func(t *testing.T, from, to store.Store) {
		furnish(t, from)
		write(t, to, "s1", message("other", "null", "user", hello, ""))
		mustCopy(t, from, to)
		add := func(name string) {
			log, err := to.Open(t.Context(), name)
			must(t, err)
			end, err := log.End(t.Context())
			must(t, err)
			_, err = log.Append(t.Context(), end, []byte(message("mine", "1", "user", hello, "")))
			must(t, err)
			must(t, log.Close())
		}
		add("s2")
		add("s8")
		must(t, from.Remove(t.Context(), "s8"))
		before := snapshot(t, to)
		did := mustCopy(t, from, to)
		var got []string
		for _, f := range did.Conflicts {
			got = append(got, f.Session+": "+f.Why)
		}
		want := []string{
			"s1: line 2 differs", "s2: the copy has entries after line 3 that the original does not have",
			"s8: it was removed from the original, and has changed in the copy after line 3",
		}
		if diff := cmp.Diff(want, got); diff != "" || len(did.Failed) > 0 {
			t.Errorf("conflicts (-want +got):\n%s%+v", diff, did.Failed)
		}
		after := snapshot(t, to)
		for name := range after {
			if strings.HasPrefix(name, "log ") && before[name] != after[name] {
				t.Errorf("%s was changed", name)
			}
		}
		if _, there := after["note one.json"]; there {
			t.Error("a note about a session that differs was copied")
		}
	})
}

// What was taken out of a store is taken out of its copy: of sessions, also those that have changed
// there, of blobs and of the trash. Nothing brings it back.
func TestCopyRedacts(t *testing.T) {
	betweenStores(t, func(t *testing.T, from, to store.Store) {
		furnish(t, from)
		secret, other := token(2), token(3)
		ref, err := from.Blobs().Put(t.Context(), []byte("the key is "+secret))
		must(t, err)
		write(t, from, "secret", message("1", "null", "user", text("take "+secret), ""),
			message("2", "1", "tool", fmt.Sprintf(`{"type":"tool_result","tool_result":{"tool_use_id":"c","blob":%q}}`, ref), ""))
		mustCopy(t, from, to)
		write(t, to, "own", message("1", "null", "user", text("here, too: "+secret), ""))
		if !strings.Contains(everywhere(t, to), secret) {
			t.Fatal("the secret was not copied: the test shows nothing")
		}
		// The copy has a list of its own, with another key.
		write(t, to, "before", message("1", "null", "user", text("use "+other), ""))
		_, err = upkeep.Redact(t.Context(), to, upkeep.RedactRequest{Sessions: []string{"before"}, Apply: true})
		must(t, err)
		_, err = upkeep.Redact(t.Context(), from, upkeep.RedactRequest{Apply: true})
		must(t, err)
		did := mustCopy(t, from, to)
		if len(did.Conflicts)+len(did.Failed) > 0 || did.Receipt == nil {
			t.Errorf("copied %+v", did)
		}
		if text := everywhere(t, to); strings.Contains(text, secret) || strings.Contains(text, token(1)) {
			t.Error("a secret is left in the copy")
		}
		was, is := snapshot(t, from), snapshot(t, to)
		for name, text := range was {
			if is[name] != text {
				t.Errorf("%s is %q, want %q", name, is[name], text)
			}
		}
		guard, err := clean.LoadGuard(t.Context(), to)
		must(t, err)
		for _, s := range []string{secret, other, token(1)} {
			if has, err := guard.Has([]byte(message("1", "null", "user", text(s), ""))); !has || err != nil {
				t.Errorf("%.8s… could come back: %v", s, err)
			}
		}
		if did := mustCopy(t, from, to); did.Size != 0 || did.Redacted > 0 || did.Receipt != nil {
			t.Errorf("then copied %+v", did)
		}
		// What was taken out of the copy alone does not come back either.
		write(t, from, "late", message("1", "null", "user", text("use "+other), ""))
		did = mustCopy(t, from, to)
		if len(did.Conflicts) != 1 || did.Conflicts[0].Session != "late" || !strings.Contains(did.Conflicts[0].Why, "was redacted in the copy") {
			t.Errorf("copied %+v", did)
		}
		if strings.Contains(everywhere(t, to), other) {
			t.Error("what was redacted in the copy has come back")
		}
	})
}

// Others write to the store meanwhile. The copy has a prefix of each session, and then all of it.
func TestCopyWhileOthersWrite(t *testing.T) {
	betweenStores(t, func(t *testing.T, from, to store.Store) {
		for i := range 4 {
			write(t, from, fmt.Sprint("s", i), message("1", "null", "user", hello, ""))
		}
		ctx, cancel := context.WithCancel(t.Context())
		var writers sync.WaitGroup
		for i := range 4 {
			writers.Go(func() {
				log, err := from.Open(t.Context(), fmt.Sprint("s", i))
				if err != nil {
					t.Error(err)
					return
				}
				defer log.Close()
				end, err := log.End(t.Context())
				for n := 0; ctx.Err() == nil && err == nil; n++ {
					end, err = log.Append(t.Context(), end, []byte(message(fmt.Sprint("m", n), "1", "user", hello, "")))
					time.Sleep(time.Millisecond)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		for range 3 {
			if did := mustCopy(t, from, to); len(did.Conflicts)+len(did.Failed) > 0 {
				t.Errorf("copied %+v", did)
			}
			was, is := snapshot(t, from), snapshot(t, to)
			for name, text := range is {
				if !strings.HasPrefix(was[name], text) {
					t.Errorf("%s is no prefix", name)
				}
			}
		}
		cancel()
		writers.Wait()
		mustCopy(t, from, to)
		wantSame(t, from, to)
	})
}

// Some sessions are copied with their content, and nothing else.
func TestCopySome(t *testing.T) {
	t.Parallel()
	from, to := inFiles(t), inMemory(t)
	furnish(t, from)
	did, err := upkeep.Copy(t.Context(), from, to, upkeep.CopyRequest{Sessions: []string{"odd", "s1"}, Rooms: []string{room}})
	must(t, err)
	var names []string
	for name := range snapshot(t, to) {
		names = append(names, strings.SplitN(name, ":", 2)[0])
	}
	slices.Sort(names)
	if want := "blob sha256 log odd log s1"; did.Created != 2 || strings.Join(names, " ") != want {
		t.Errorf("the copy has %v, want %s", names, want)
	}
}

// What is over a limit of the copy is not copied, and all else is. A full store stays as it is.
func TestCopyLimits(t *testing.T) {
	t.Parallel()
	from := inFiles(t)
	write(t, from, "large", message("1", "null", "user", text(strings.Repeat("x", 2000)), ""))
	write(t, from, "small", message("1", "null", "user", hello, ""))
	to := memory.New(&memory.Options{MaxLine: 1000})
	did := mustCopy(t, from, to)
	if did.Created != 1 || len(did.Failed) != 1 || did.Failed[0].Session != "large" || !strings.Contains(did.Failed[0].Why, "max_entry") {
		t.Errorf("copied %+v", did)
	}
	did = mustCopy(t, from, memory.New(&memory.Options{MaxLogs: 1}))
	if did.Created != 1 || len(did.Failed) != 1 || !strings.Contains(did.Failed[0].Why, "max_sessions") {
		t.Errorf("copied %+v", did)
	}
	// The beginning of a line that is too long to be read is not a line.
	narrow, err := file.Open(from.Where(), &file.Options{MaxLine: 1000})
	must(t, err)
	defer narrow.Close()
	copied := inMemory(t)
	did = mustCopy(t, narrow, copied)
	if len(did.Failed) != 1 || did.Failed[0].Session != "large" || snapshot(t, copied)["log large"] != "" {
		t.Errorf("copied %+v", did)
	}
}

// A store that does not keep what it was given is found out.
func TestCopyReadsBack(t *testing.T) {
	t.Parallel()
	from := inFiles(t)
	furnish(t, from)
	did := mustCopy(t, from, forgetful{memory.New(nil)})
	if len(did.Failed) != did.Sessions || !strings.Contains(did.Failed[0].Why, "what was read back is not what was written") {
		t.Errorf("copied %+v", did)
	}
}

// forgetful is a store whose batches lose the last byte of each line.
type forgetful struct{ store.Store }

func (f forgetful) Batch() store.Batch { return forgetfulBatch{f.Store.Batch()} }

type forgetfulBatch struct{ store.Batch }

func (f forgetfulBatch) Add(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) error {
	return f.Batch.Add(ctx, name, func(yield func([]byte, error) bool) {
		for line, err := range lines {
			if !yield(line[:max(len(line)-1, 0)], err) {
				return
			}
		}
	})
}
