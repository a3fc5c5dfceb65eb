package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// foreign returns an entry as it comes from elsewhere; "" is no parent.
func foreign(id, parent, text string) session.Entry {
	e := session.Entry{
		Type: session.TypeMessage, ID: id, Timestamp: time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC),
		Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text(text)}},
	}
	if parent != "" {
		e.ParentID = &parent
	}
	return e
}

func TestGraftKeepsIDsParentsAndTimes(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	mustDo(t, s.Graft(foreign("a", "", "one"), foreign("b", "a", "two"), foreign("c", "a", "three")))
	mustDo(t, s.Graft(foreign("d", "b", strings.Repeat("four", 20_000))))
	s = s.again()
	if got, want := s.ids(), []string{"a", "b", "c", "d"}; !slices.Equal(got, want) {
		t.Fatalf("ids %q, want %q", got, want)
	}
	if s.LeafID() != "d" {
		t.Errorf("the leaf is %q, want d", s.LeafID())
	}
	path := mustGet(s.Forward(""))(t)
	if len(path) != 3 || path[0].ID != "a" || path[1].ID != "b" || !path[0].Timestamp.Equal(foreign("", "", "").Timestamp) {
		t.Errorf("the path is %v", path)
	}
	for id, want := range map[string]bool{"a": true, "d": true, "x": false} {
		if got := mustGet(s.Has(id))(t); got != want {
			t.Errorf("Has(%q) = %v", id, got)
		}
	}
	if problems := s.problems(); len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
}

func TestGraftAllOrNothing(t *testing.T) {
	t.Parallel()
	timeless := foreign("t", "a", "no time")
	timeless.Timestamp = time.Time{}
	for name, test := range map[string]struct {
		entries []session.Entry
		want    error
	}{
		"an id that is taken":     {[]session.Entry{foreign("b", "a", ""), foreign("a", "", "")}, session.ErrExist},
		"an id given twice":       {[]session.Entry{foreign("b", "a", ""), foreign("b", "a", "")}, session.ErrExist},
		"no such parent":          {[]session.Entry{foreign("b", "a", ""), foreign("c", "x", "")}, session.ErrNotExist},
		"a parent that is later":  {[]session.Entry{foreign("b", "c", ""), foreign("c", "a", "")}, session.ErrNotExist},
		"its own parent":          {[]session.Entry{foreign("b", "b", "")}, session.ErrNotExist},
		"no id":                   {[]session.Entry{foreign("", "a", "")}, session.ErrInvalid},
		"an id that is not UTF-8": {[]session.Entry{foreign("\xff", "a", "")}, session.ErrInvalid},
		"no time":                 {[]session.Entry{timeless}, session.ErrInvalid},
		"no type":                 {[]session.Entry{{ID: "b", Timestamp: time.Now()}}, session.ErrInvalid},
		"nested too deep": {[]session.Entry{func() session.Entry {
			e := foreign("b", "a", "")
			deep := strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999)
			e.Extra = session.Fields{{Name: "deep", Value: json.RawMessage(deep + strings.Repeat(" ", 10))}}
			e.Message.Content = []session.Content{{Raw: json.RawMessage(deep)}}
			return e
		}()}, session.ErrInvalid},
	} {
		s := newScribe(t)
		mustDo(t, s.Graft(foreign("a", "", "one")))
		if err := s.Graft(test.entries...); !errors.Is(err, test.want) {
			t.Errorf("%s: error %v, want %v", name, err, test.want)
		}
		if got := s.again().ids(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("%s: ids %q afterwards", name, got)
		}
	}
}

// TestGraftTogether: two writers that graft the same entries give them once.
func TestGraftTogether(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	mustDo(t, s.Graft(foreign("root", "", "")))
	var wins [26]int
	var mu sync.Mutex
	var done sync.WaitGroup
	for range 3 {
		w := s.again(func(c *session.Config) { c.Options.OnConflict = session.GrowBranch })
		done.Go(func() {
			for i := range wins {
				err := w.Graft(foreign(string(rune('a'+i)), "root", "text"))
				mu.Lock()
				if err == nil {
					wins[i]++
				} else if !errors.Is(err, session.ErrExist) {
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	done.Wait()
	for i, n := range wins {
		if n != 1 {
			t.Errorf("entry %c was grafted %d times", 'a'+i, n)
		}
	}
	if got := s.again().problems(); len(got) > 0 {
		t.Errorf("problems: %v", got)
	}
}

// TestGraftCrash: whatever a power cut leaves of a graft hangs together.
func TestGraftCrash(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	disk := vfstest.NewMemory()
	st := mustGet(file.Open("/s", &file.Options{FS: disk}))(t)
	s := mustGet(session.Create(ctx, st, session.Header{ID: "g"}, nil))(t)
	mustDo(t, s.Graft(foreign("a", "", "one"), foreign("b", "a", "two")))
	mustDo(t, s.Graft(foreign("c", "b", "three"), foreign("d", "c", "four")))
	crashed := disk.CrashClone(rand.New(rand.NewPCG(1, 2)))
	again := mustGet(session.Open(ctx, mustGet(file.Open("/s", &file.Options{FS: crashed}))(t), "g", nil))(t)
	if again.LeafID() != "d" {
		t.Errorf("after a power cut the leaf is %q", again.LeafID())
	}
}

// TestForkTakesBlobsOfCustomEntries: what an import keeps goes along.
func TestForkTakesBlobsOfCustomEntries(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	from, to := memory.New(nil), memory.New(nil)
	s := mustGet(session.Create(ctx, from, session.Header{}, nil))(t)
	ref := mustGet(from.Blobs().Put(ctx, []byte("kept")))(t)
	for _, blob := range []any{string(ref), "sha256:none", 7} {
		mustGet(s.AppendCustomEntry("x", map[string]any{"blob": blob}))(t)
	}
	mustGet(s.Fork(ctx, to, nil))(t)
	if got, err := to.Blobs().Get(ctx, ref); err != nil || string(got) != "kept" {
		t.Errorf("the blob there is %q, %v", got, err)
	}
}

func TestToolUseOpaque(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	raw := json.RawMessage(`{"b":1.50,"a":{"x":[1]}}`)
	e := foreign("a", "", "")
	e.Message.Content = []session.Content{session.ToolUseOpaque("c", "Bash", raw), session.ToolUseOpaque("d", "Bad", json.RawMessage(`[1]`))}
	if got := mustGet(e.Message.Content[0].ToolUse.InputJSON())(t); string(got) != string(raw) {
		t.Errorf("InputJSON = %s", got)
	}
	mustDo(t, s.Graft(e))
	if text := string(readBytes(t, s.File())); !strings.Contains(text, `"input":`+string(raw)) {
		t.Errorf("the log is %s", text)
	}
	use := mustGet(s.again().Entry("a"))(t).Message.Content
	if use[0].ToolUse.Input["b"] != 1.5 || use[1].ToolUse.Input != nil {
		t.Errorf("read back %v and %v", use[0].ToolUse.Input, use[1].ToolUse.Input)
	}
	changed := use[0].ToolUse
	changed.Input = map[string]any{"n": 1}
	if got := mustGet(changed.InputJSON())(t); string(got) != `{"n":1}` {
		t.Errorf("after a change InputJSON = %s", got)
	}
}
