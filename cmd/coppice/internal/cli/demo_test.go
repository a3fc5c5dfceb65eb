package cli

import (
	"testing"
	"time"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/demo"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// TestDemoIsOfTheLastDays writes the demo: its sessions begin one after the other in the last
// days, the last of them within the last hour, and each file is as old as its last entry.
func TestDemoIsOfTheLastDays(t *testing.T) {
	t.Parallel()
	h, err := home.Open(t.Context(), t.TempDir(), &home.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	now := time.Now()
	made, err := demo.Write(t.Context(), h, now, false)
	if err != nil {
		t.Fatal(err)
	}
	modified := make(map[string]time.Time)
	for stat, err := range h.Store().List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if modified[stat.Name] = stat.Modified; stat.Archived != (stat.Name == "licence") {
			t.Errorf("%s is archived: %v", stat.Name, stat.Archived)
		}
	}
	at := now.AddDate(0, 0, -11)
	for _, one := range made {
		s, err := session.Open(t.Context(), h.Store(), one.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if began := s.Header().CreatedAt; !began.After(at) {
			t.Errorf("%s began at %v, which is before %v", one.ID, began, at)
		}
		at = s.Header().CreatedAt
		last, err := s.Entry(s.LeafID())
		if err != nil {
			t.Fatal(err)
		}
		if one.ID != "licence" && !modified[one.ID].Equal(last.Timestamp) {
			t.Errorf("the file of %s is from %v, and its last entry from %v", one.ID, modified[one.ID], last.Timestamp)
		}
	}
	if len(made) != len(modified) || at.After(now) || now.Sub(at) > time.Hour {
		t.Errorf("%d sessions of %d, the last of which began at %v: it is %v", len(made), len(modified), at, now)
	}
}
