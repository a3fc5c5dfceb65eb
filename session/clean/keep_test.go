package clean_test

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// idsOf returns the IDs of the findings in a session, by kind.
func idsOf(s *clean.Sweep, name, kind string) (ids []string) {
	for _, secret := range s.Secrets {
		if secret.Kind == kind && secret.Session == name {
			ids = append(ids, secret.ID)
		}
	}
	return ids
}

// A person keeps what is no secret. It stays in every file and spelling, and nothing takes it
// out later. The rest goes.
func TestKeptSecretsStay(t *testing.T) {
	t.Parallel()
	kept, taken := token(1), token(2)
	long := strings.Repeat("line of output\n", 30)
	f := newFixture(t)
	f.session("one", message("use "+kept+" and "+taken), result(long+kept), result(long+"both "+kept+" "+taken))
	f.session("two", message("header "+base64.StdEncoding.EncodeToString([]byte("bob:"+kept))), result(long+kept))
	f.session("gone", message("removed "+taken+" "+kept))
	f.must(f.st.Remove(t.Context(), "gone"))
	before := f.texts("two")

	look := f.look()
	ids := idsOf(look, "one", "github-token")
	for i, id := range ids {
		if slices.Contains(ids[:i], id) || strings.Contains(kept+taken, id) {
			t.Errorf("the ids are %v", ids)
		}
	}
	// The same place has the same ID, whatever else is searched, and any finding will do.
	if alone := idsOf(f.look("one"), "one", "github-token"); !slices.Equal(alone, ids) {
		t.Errorf("the ids are %v, and %v if the session is searched alone", ids, alone)
	}
	s, err := clean.LookWith(t.Context(), f.st, clean.Options{Keep: ids[:1]})
	f.must(err)
	receipt := f.apply(s)
	if len(receipt.Left) > 0 || !slices.Equal(receipt.Sessions, []string{"one"}) || receipt.Kinds["github-token"] != 3 {
		t.Errorf("the receipt is %+v", receipt)
	}
	if found := grep(t, f.st.Where(), taken); len(found) > 0 {
		t.Errorf("what was taken is in %v", found)
	}
	if found := grep(t, f.st.Where(), kept); len(found) != 4 { // two logs of three, the copy, and two blobs, one of them new
		t.Errorf("what was kept is in %v", found)
	}
	if after := f.texts("two"); !slices.Equal(after, before) {
		t.Errorf("a session of kept secrets says %q", after)
	}
	e := message("again " + kept + " " + taken)
	f.must(f.guard().Append(&e))
	if got := session.TextOf(e.Message.Content); got != "again "+kept+" "+gone {
		t.Errorf("the guard says %q", got)
	}
}

// An ID that no finding has is an error, and nothing changes.
func TestKeepingWhatIsNotThere(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.session("one", message("use "+token(1)))
	f.session("two", message("nothing"))
	for _, names := range [][]string{{"one"}, {"two"}} {
		_, err := clean.LookWith(t.Context(), f.st, clean.Options{Sessions: names, Keep: []string{"nosuchid"}})
		if !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), `"nosuchid"`) || !strings.Contains(err.Error(), "again") {
			t.Errorf("in %v: %v", names, err)
		}
	}
}

// What is kept stays even if the power fails and another process finishes: a word that was
// taken out makes it use the rules again.
func TestKeptSecretsStayAfterACrash(t *testing.T) {
	t.Parallel()
	kept := token(1)
	mem := vfstest.NewMemory()
	f := &fixture{t, openAt(t, mem), session.Options{}}
	f.session("one", message("redis://:butterflies@cache:6379"), message("use "+kept))
	ids := idsOf(f.look(), "one", "github-token")
	f.must(f.st.Close())
	off := false
	disk := &vfstest.Faulty{FS: mem, Before: func(op vfstest.Op) error {
		if off = off || op.Kind == vfstest.OpRename && strings.HasSuffix(op.To, "one.jsonl"); off && op.Kind.Mutates() {
			return errors.New("the power failed")
		}
		return nil
	}}
	err := redactAt(t, disk, func(st *file.Store) error {
		s, err := clean.LookWith(t.Context(), st, clean.Options{Keep: ids})
		if err == nil {
			_, err = s.Apply(t.Context())
		}
		return err
	})
	if err == nil {
		t.Fatal("the power did not fail")
	}
	st := openAt(t, mem)
	receipt, err := clean.Finish(t.Context(), st, clean.Options{})
	f.must(err)
	if receipt == nil || receipt.Kinds["url-password"] != 1 || len(hasText(t, mem, "butterflies")) > 0 || !slices.Contains(hasText(t, mem, kept), "/store/one.jsonl") {
		t.Errorf("the receipt is %+v, and the secret is in %v", receipt, hasText(t, mem, kept))
	}
}
