//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
	"github.com/coppice-dev/coppice/store/storetest"
)

func TestMaxLogs(t *testing.T) {
	t.Parallel()
	where := postgrestest.URL(t)
	s := mustOpen(t, where, &postgres.Options{MaxLogs: 2})
	storetest.MustCreate(t, s, "a", `{}`)
	b := s.Batch()
	for _, name := range []string{"b", "c", "a"} {
		if err := b.Add(t.Context(), name, store.Lines([]byte(`{}`))); err != nil {
			t.Fatal(err)
		}
	}
	errs := b.Commit(t.Context())
	if len(errs) != 2 || !errors.Is(errs["c"], store.ErrTooLarge) || !errors.Is(errs["a"], store.ErrExist) {
		t.Errorf("commit: %v", errs)
	}
	if _, err := s.Create(t.Context(), "d", store.Lines()); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("a third log: %v", err)
	}
	if _, err := s.Create(t.Context(), "a", store.Lines()); !errors.Is(err, store.ErrExist) {
		t.Errorf("a log that exists: %v", err)
	}
	room := func(ctx context.Context, s store.Store, n int) error {
		if n != 1 {
			return fmt.Errorf("asked for room for %d", n)
		}
		return s.Remove(ctx, "a")
	}
	storetest.MustCreate(t, mustOpen(t, where, &postgres.Options{MaxLogs: 2, MakeRoom: room}), "d", `{}`)
	none := func(context.Context, store.Store, int) error { return errors.New("no room") }
	if _, err := mustOpen(t, where, &postgres.Options{MaxLogs: 2, MakeRoom: none}).Create(t.Context(), "e", store.Lines()); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("without room: %v", err)
	}
	names, err := store.Names(t.Context(), s)
	if err != nil || len(names) != 2 {
		t.Errorf("there are %q, %v", names, err)
	}
}

func TestMaxLog(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, postgrestest.URL(t), &postgres.Options{MaxLog: 20})
	log := storetest.MustCreate(t, s, "a", `{"n":0}`)
	end := storetest.MustEnd(t, log)
	for at, want := range map[store.Pos]error{end: store.ErrTooLarge, 0: store.ErrConflict} {
		if _, err := log.Append(t.Context(), at, []byte(`{"text":"too long"}`)); !errors.Is(err, want) {
			t.Errorf("append at %d: %v, want %v", at, err, want)
		}
	}
	if _, err := s.Create(t.Context(), "b", store.Lines([]byte(`{"text":"too long, too"}`))); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("create: %v", err)
	}
	if err := s.RemoveAt(t.Context(), "a", -1); !errors.Is(err, store.ErrConflict) {
		t.Errorf("remove at nowhere: %v", err)
	}
}

// A line over the limit of a program is shown as cut, and stays as it is when others are edited,
// with the blobs that it names.
func TestCutLines(t *testing.T) {
	t.Parallel()
	where := postgrestest.URL(t)
	large := mustOpen(t, where, nil)
	ref := storetest.MustPut(t, large.Blobs(), []byte("content"))
	long := fmt.Sprintf(`{"text":%q,"blob":%q}`, strings.Repeat("x", 1000), ref)
	storetest.MustCreate(t, large, "a", `{"n":0}`, long, `{"n":2}`)
	small := mustOpen(t, where, &postgres.Options{MaxLine: 100})
	lines := storetest.MustRead(t, storetest.MustOpen(t, small, "a"), 0)
	if len(lines) != 3 || !lines[1].Cut || len(lines[1].Data) != 100 || lines[2].Cut {
		t.Fatalf("read %+v", lines)
	}
	part := store.Part{Kind: store.PartLog, Name: "a", Place: small.Parts().Where(store.PartLog, "a")}
	longer := func(line []byte) ([]byte, error) { return append([]byte(`[1,2,3]`), line...), nil }
	if err := small.Parts().Edit(t.Context(), part, longer); err != nil {
		t.Fatal(err)
	}
	lines = storetest.MustRead(t, storetest.MustOpen(t, large, "a"), 0)
	if len(lines) != 3 || string(lines[0].Data) != `[1,2,3]{"n":0}` || string(lines[1].Data) != long || string(lines[2].Data) != `[1,2,3]{"n":2}` {
		t.Fatalf("after an edit: %+v", lines)
	}
	if done, err := large.Blobs().Collect(t.Context(), ref); err != nil || len(done.Deleted) > 0 {
		t.Errorf("collected %+v, %v", done, err)
	}
}

// What is not finished can be looked into: a redaction must find everything.
func TestOpenDraft(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, postgrestest.URL(t), nil)
	line := append(bytes.Repeat([]byte("x"), 5<<20), '}')
	b := s.Batch()
	defer b.Discard()
	if err := b.Add(t.Context(), "b", store.Lines(line)); err != nil {
		t.Fatal(err)
	}
	left := drafts(t, s)
	if len(left) != 1 {
		t.Fatalf("there are %+v", left)
	}
	r, err := s.Parts().Open(t.Context(), left[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(text, append(line, '\n')) {
		t.Errorf("it has %d bytes, %v", len(text), err)
	}
	if _, err := s.Parts().Open(t.Context(), store.Part{Kind: store.PartTemp, Place: "nowhere"}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("open a part that is none: %v", err)
	}
	// So many bytes that the batch does not keep them.
	for i := range 8 {
		if err := b.Add(t.Context(), fmt.Sprint("more-", i), store.Lines(bytes.Repeat([]byte("y"), 3<<20), bytes.Repeat([]byte("z"), 3<<20))); err != nil {
			t.Fatal(err)
		}
	}
	if errs := b.Commit(t.Context()); len(errs) > 0 {
		t.Fatal(errs)
	}
	if left := drafts(t, s); len(left) > 0 {
		t.Errorf("left behind: %+v", left)
	}
	if _, err := s.Open(t.Context(), "more-7"); err != nil {
		t.Error(err)
	}
}
