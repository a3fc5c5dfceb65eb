package window_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

func TestSourcesAreNames(t *testing.T) {
	t.Parallel()
	for s := window.Reported; s <= window.Estimated; s++ {
		data := must(json.Marshal(s))(t)
		var read window.Source
		if err := json.Unmarshal(data, &read); err != nil || read != s || string(data) != `"`+s.String()+`"` {
			t.Errorf("%v is written as %s and read as %v, error %v", s, data, read, err)
		}
	}
	var s window.Source
	for _, name := range []string{"", "guessed"} {
		if err := s.UnmarshalText([]byte(name)); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%q: error is %v", name, err)
		}
	}
	if _, err := window.Source(0).MarshalText(); !errors.Is(err, session.ErrInvalid) || window.Source(9).String() != "Source(9)" {
		t.Errorf("source 0: error is %v; source 9 is %v", err, window.Source(9))
	}
}
