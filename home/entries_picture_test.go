package home_test

import (
	"context"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// A picture knows the window of the model that goes on and what its responses cost, and has as many
// points as were asked for.
func TestPicture(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.say(session.Header{})
	for i := range 10 {
		e := session.Message(session.RoleAssistant, session.Text("yes"))
		e.Message.Provider, e.Message.Model, e.Message.Usage = "anthropic", "claude-sonnet-4-5", &session.Usage{Input: 1000 * (1 + i), Output: 10}
		if _, err := s.AppendEntry(e); err != nil {
			t.Fatal(err)
		}
	}
	picture := func(points int, leaf string) *home.PictureResult {
		t.Helper()
		p, err := h.Entries.Picture(t.Context(), home.PictureRequest{Session: s.ID(), Points: points, Leaf: leaf})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := picture(-1, "")
	if len(p.Points) != 10 || p.Window != 200_000 || p.Leaf != s.LeafID() || p.Sum.Unpriced != 0 {
		t.Errorf("%+v", p)
	}
	spent := h.stats(home.StatsRequest{Session: s.ID()})
	if p.Sum.CostMicroUSD != spent.Total.CostMicroUSD || p.Sum.CostMicroUSD == 0 || p.Points[9].SoFar != p.Sum.CostMicroUSD {
		t.Errorf("the picture says %d, the ledger %d", p.Sum.CostMicroUSD, spent.Total.CostMicroUSD)
	}
	if few := picture(3, ""); len(few.Points) != 3 || few.Sum != p.Sum || few.Points[2].Context != 10_010 {
		t.Errorf("%+v", few)
	}
	if part := picture(0, p.Points[4].Entry); len(part.Points) != 5 || part.Sum.Context != 5010 {
		t.Errorf("%+v", part)
	}
	if _, err := h.Entries.Picture(t.Context(), home.PictureRequest{Session: s.ID(), Points: -2}); err == nil {
		t.Error("-2 points are no error")
	}
	none, err := session.Create(context.Background(), h.Store(), session.Header{ID: "none"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	if p, err := h.Entries.Picture(t.Context(), home.PictureRequest{Session: "none"}); err != nil || len(p.Points) != 0 || p.Leaf != "" {
		t.Errorf("%+v, %v", p, err)
	}
}

// An exported page has the picture, up to the leaf that was asked for.
func TestAnExportHasThePicture(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.say(session.Header{})
	var ids []string
	for range 3 {
		e := session.Message(session.RoleAssistant, session.Text("yes"))
		e.Message.Usage = &session.Usage{Input: 1000}
		id, err := s.AppendEntry(e)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for leaf, want := range map[string]string{"": "How it went: 3 requests", ids[1]: "How it went: 2 requests"} {
		var page strings.Builder
		_, err := h.Transfer.Export(t.Context(), home.ExportRequest{OpenRequest: home.OpenRequest{Session: s.ID()}, Format: home.ExportHTML, Leaf: leaf}, func(p home.ExportPiece) error {
			page.Write(p.Data)
			return nil
		})
		if err != nil || !strings.Contains(page.String(), want) {
			t.Errorf("leaf %q: the page does not say %q: %v", leaf, want, err)
		}
	}
}
