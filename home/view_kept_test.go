package home_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/bench/shapes"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

func mapOf(t *testing.T, h *home.Home, r home.MapRequest) *home.MapResult {
	t.Helper()
	return must[*home.MapResult](t)(h.Entries.Map(t.Context(), r))
}

// TestWhatIsLookedAtIsUpToDate: whatever happens to a conversation that stays open, through this
// home or by another program, a window shows what a program sees that opens it now.
func TestWhatIsLookedAtIsUpToDate(t *testing.T) {
	t.Parallel()
	secret := "hunter2-" + "correct-horse"
	for name, change := range changes(secret) {
		for _, elsewhere := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, elsewhere), func(t *testing.T) {
				t.Parallel()
				h := newHouseInFiles(t)
				id, _ := begin(t, h.Home, "one", "before "+secret)
				by := h.Home
				if elsewhere {
					by = h.open(&home.Options{})
				}
				look := func(h *home.Home) string {
					t.Helper()
					rows := rowsOf(t, h, home.RowsRequest{Session: id})
					return string(must[[]byte](t)(json.Marshal([]any{rows, mapOf(t, h, home.MapRequest{Session: id})})))
				}
				before := look(h.Home)
				if err := change(t, by, id); err != nil {
					t.Fatal(err)
				}
				say(t, by, id, "after")
				after := look(h.Home)
				if after == before || !strings.Contains(after, `"after"`) {
					t.Errorf("nothing new in %s", after)
				}
				if name == "redact" && strings.Contains(after, secret) {
					t.Error("what was redacted is still shown")
				}
				if diff := cmp.Diff(look(h.open(&home.Options{})), after); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestWhatIsRemovedIsNotLookedAt(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []bool{false, true} {
		h := newHouseInFiles(t)
		id, _ := begin(t, h.Home, "one")
		by := h.Home
		if elsewhere {
			by = h.open(&home.Options{})
		}
		rowsOf(t, h.Home, home.RowsRequest{Session: id})
		must[*home.RemoveResult](t)(by.Sessions.Remove(t.Context(), home.RemoveRequest{Session: id}))
		_, err := h.Entries.Rows(t.Context(), home.RowsRequest{Session: id})
		wantKind(t, err, home.KindNotFound)
	}
}

// TestWindowsOfEveryShape: the windows of a session of any shape make up the whole, and have what
// an outline has.
func TestWindowsOfEveryShape(t *testing.T) {
	t.Parallel()
	for _, shape := range shapes.All {
		t.Run(shape.Name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t).Home
			lines := strings.Split(strings.TrimSpace(shape.Lines(40)), "\n")
			data := make([][]byte, len(lines))
			for i := range lines {
				data[i] = []byte(lines[i])
			}
			log := must[store.Log](t)(h.Store().Create(t.Context(), shapes.ID, store.Lines(data...)))
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			c := must[*home.Conversation](t)(h.Conversation(t.Context(), home.OpenRequest{Session: shapes.ID}))
			defer c.Close()
			out := must[*render.Outline](t)(render.NewOutline(must[render.Conversation](t)(c.Rendered(t.Context())), render.OutlineOptions{Leaf: c.LeafID()}))
			var want, got []string
			for _, n := range out.Path() {
				want = append(want, n.Entry.ID)
			}
			const count = 7
			for from := 0; from == 0 || from < len(want); from += count {
				rows := rowsOf(t, h, home.RowsRequest{Session: shapes.ID, From: from, Count: count})
				got = append(got, rowIDs(rows)...)
				if from == 0 && len(rows.Roots) != len(out.OtherRoots()) {
					t.Errorf("%d other beginnings, want %d", len(rows.Roots), len(out.OtherRoots()))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("the rows are %v, want %v", got, want)
			}
			parents := make(map[string]string)
			for _, n := range out.Order {
				for _, child := range n.Children {
					parents[child.Entry.ID] = n.Entry.ID
				}
			}
			for _, fold := range []int{-1, 0, 2} {
				bare := mapOf(t, h, home.MapRequest{Session: shapes.ID, Count: 10_000, Fold: &fold, Bare: true})
				drawn := 0
				for from, total := 0, 1; from < total; from += count {
					part := mapOf(t, h, home.MapRequest{Session: shapes.ID, From: from, Count: count, Fold: &fold})
					total = part.Total
					for _, row := range part.Rows {
						if row.Parent != parents[row.Entry] {
							t.Errorf("%s follows %s, want %s", row.Entry, row.Parent, parents[row.Entry])
						}
						row := row
						row.Kind, row.Role, row.Gist, row.Time, row.Subagents = "", "", "", time.Time{}, nil
						if !cmp.Equal(bare.Rows[row.Index], row) {
							t.Errorf("a bare row is %+v, want %+v", bare.Rows[row.Index], row)
						}
						if drawn += max(row.Folded, 1); row.Folded == 0 {
							at := mapOf(t, h, home.MapRequest{Session: shapes.ID, At: row.Entry, Count: 1, Fold: &fold})
							if at.Rows[0].Entry != row.Entry || at.From != row.Index {
								t.Errorf("%s is row %d, and found in row %d", row.Entry, row.Index, at.From)
							}
						}
					}
				}
				if drawn != len(out.Order) {
					t.Errorf("with %d, %d entries are drawn, want %d", fold, drawn, len(out.Order))
				}
			}
		})
	}
}

func TestASeekEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.say(session.Header{}, slices.Repeat([]string{"hello"}, 500)...)
	rowsOf(t, h.Home, home.RowsRequest{Session: s.ID()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Entries.Seek(ctx, home.SeekRequest{Session: s.ID(), Text: "nothing"}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	got := must[*home.SeekResult](t)(h.Entries.Seek(t.Context(), home.SeekRequest{Session: s.ID(), Text: "nothing", From: -1, Back: true}))
	if got.Found || got.Scanned != 500 {
		t.Errorf("%+v", got)
	}
}
