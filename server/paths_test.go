package server_test

import (
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/server"
)

// Relative directories would show a caller who may only read what there is around the home.
func TestAReadTokenLearnsNothingOfTheMachine(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *server.Options) { o.Authorize = allowed })
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	user, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/v1/sessions?cwd=.", "/v1/sessions?filter=cwd:.", "/v1/sessions?cwd=~", "/v1/sessions?file=~/x", "/v1/sessions?cwd=testdata",
		"/v1/shelf?filter=cwd:.", "/v1/search?query=x+cwd%3A.", "/v1/search?query=x&cwd=.", "/v1/sessions/" + url.PathEscape("."),
	} {
		a := s.ask("GET", path, "", "Authorization: Bearer r")
		if text := string(a.body); strings.Contains(text, dir) || strings.Contains(text, `"`+user) {
			t.Errorf("%s: %s", path, text)
		}
	}
}
