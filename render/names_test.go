package render_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/render"
)

// A directory is called by its last element, and by more where that is not enough.
func TestShortDirs(t *testing.T) {
	dirs := map[string]string{
		"/home/ada/work/api": "work/api", "/home/ada/play/api": "play/api", "/home/ada/forge": "forge", `C:\code\web`: `code\web`, "/srv/web/": "srv/web",
		"/a/b/x": "a/b/x", "/c/b/x": "c/b/x", "x": "x", "/": "/", "": "",
	}
	got := render.ShortDirs(slices.Collect(maps.Keys(dirs)))
	for dir, want := range dirs {
		if got[dir] != want {
			t.Errorf("%q is called %q, want %q", dir, got[dir], want)
		}
	}
	if got := render.ShortDirs([]string{"/x/api", "/x/api"}); got["/x/api"] != "api" {
		t.Errorf("one directory is called %q", got["/x/api"])
	}
}

// An id of ours is as good as whole when half of it is there; what others made is not.
func TestShortID(t *testing.T) {
	for id, want := range map[string]string{
		"0197ab12-3456-7abc-8def-0123456789ab": "0197ab12-3456-7abc",
		"0197ab12-3456-4abc-8def-0123456789ab": "0197ab12-3456-4abc-8def-0123456789ab",
		"5357f8ac-0f14-8d98-9c29-53c11466b940": "5357f8ac",
		"telegram-7":                           "telegram-7",
		"":                                     "",
	} {
		if got := render.ShortID(id); got != want {
			t.Errorf("%q became %q", id, got)
		}
	}
}
