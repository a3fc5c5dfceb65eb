package indextest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/index/indextest"
	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/index/sqlite"
)

// broken are rooms that are wrong in one way. Each is named after a check that must fail.
var broken = map[string]func(room.Room) room.Room{
	"Transaction that fails and stays": func(r room.Room) room.Room { return hasty{r} },
	"Remove without the texts":         func(r room.Room) room.Room { return hoarder{r} },
	"Close without an end":             func(r room.Room) room.Room { return open{r} },
	"Replaced without a word":          func(r room.Room) room.Room { return deaf{r, room.ErrReplaced} },
	"Damaged without an end":           func(r room.Room) room.Room { return blind{r} },
	"Rewrite that leaves traces":       func(r room.Room) room.Room { return boaster{r} },
	"Answers without a rebuild":        func(r room.Room) room.Room { return modest{r} },
}

type (
	hasty   struct{ room.Room }
	hoarder struct{ room.Room }
	hoard   struct{ room.Tx }
	open    struct{ room.Room }
	blind   struct{ room.Room }
	boaster struct{ room.Room }
	modest  struct{ room.Room }
	deaf    struct {
		room.Room
		to error
	}
)

func (r hasty) Update(ctx context.Context, t room.Tables, f func(room.Tx) error) (err error) {
	return errors.Join(r.Room.Update(ctx, t, func(tx room.Tx) error { err = f(tx); return nil }), err)
}

func (r hoarder) Update(ctx context.Context, t room.Tables, f func(room.Tx) error) error {
	return r.Room.Update(ctx, t, func(tx room.Tx) error { return f(hoard{tx}) })
}

func (hoard) DropTexts(context.Context, []int64) error { return nil }

func (open) Close() error { return nil }

func (r deaf) View(ctx context.Context, filled bool, f func(room.Tables) error) error {
	if err := r.Room.View(ctx, filled, f); !errors.Is(err, r.to) {
		return err
	}
	return nil
}

func (r blind) View(ctx context.Context, filled bool, f func(room.Tables) error) error {
	var damaged error
	err := r.Room.View(ctx, filled, func(t room.Tables) error {
		err := f(t)
		if errors.Is(err, room.ErrDamaged) {
			damaged, err = err, nil
		}
		return err
	})
	return errors.Join(err, damaged)
}

func (boaster) Forgets() bool { return true }

func (modest) Rebuilt() bool { return false }

const brokenEnv = "INDEXTEST_BROKEN"

// TestBrokenRoom is what the children of TestSuiteCanFail run.
func TestBrokenRoom(t *testing.T) {
	breakIt := broken[os.Getenv(brokenEnv)]
	if breakIt == nil {
		return // this is not a child
	}
	indextest.Run(t, func(t *testing.T) indextest.Place {
		path := filepath.Join(t.TempDir(), "index.db")
		return func(ctx context.Context) (room.Room, error) {
			r, err := sqlite.Open(ctx, path, nil)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { r.Close() })
			return breakIt(r), nil
		}
	})
}

// A suite that passes everything proves nothing.
func TestSuiteCanFail(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for what := range broken {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			check, _, _ := strings.Cut(what, " ")
			child := exec.CommandContext(t.Context(), self, "-test.timeout=5m", "-test.run=^TestBrokenRoom$/^"+check+"$")
			child.Env = append(os.Environ(), brokenEnv+"="+what)
			if out, err := child.CombinedOutput(); err == nil || !strings.Contains(string(out), "--- FAIL: TestBrokenRoom/"+check+" ") {
				t.Errorf("the check %s passed, or did not end (%v):\n%s", check, err, out)
			}
		})
	}
}
