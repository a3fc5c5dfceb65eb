package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

// The environment alone is enough to reach a server, in each provider's way of asking.
func TestModelOfTheEnvironmentNamesASession(t *testing.T) {
	t.Parallel()
	server := providertest.New(t, func(r *providertest.Request) providertest.Answer {
		return providertest.Answer{Message: session.MessageEntry{Content: []session.Content{session.Text("Named by " + r.Dialect)}}}
	})
	dir := filepath.Join(t.TempDir(), "sessions")
	s, err := session.New(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("Where does the parser lose tokens?")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"anthropic", "google", "openai", "openai-chat"} {
		cmd := exec.Command("coppice", "--dir", dir, "rename", s.ID(), "--auto", "--json")
		cmd.Env = append(os.Environ(), "COPPICE_CONFIG="+filepath.Join(dir, "none.toml"),
			"COPPICE_PROVIDER="+name, "COPPICE_MODEL=m", "COPPICE_BASE_URL="+server.URL, "COPPICE_KEY_COMMAND=echo a-key")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), `"name":"Named by `+name+`"`) || strings.Contains(string(out), "a-key") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	for _, r := range server.Requests() {
		sent := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key")
		if !strings.HasSuffix(sent, "a-key") {
			t.Errorf("%s: the key is %q", r.Dialect, sent)
		}
	}
}
