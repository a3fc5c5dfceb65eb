package transcripttest

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/coppice-dev/coppice/transcript"
)

// WriteFile writes a file, with the directories that it needs.
func WriteFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Database creates an SQLite database with a name, in a directory of its own, runs the
// statements, and returns its path.
func Database(t testing.TB, name string, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.FromSlash(name))
	WriteFile(t, path, "")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return path
}

// Totals counts the messages and the tool calls of all conversations.
func Totals(c *transcript.Collected) (messages, calls int) {
	for _, conv := range c.Conversations {
		for i := range conv.Records {
			m := conv.Records[i].Entry.Message
			if m == nil {
				continue
			}
			messages++
			for j := range m.Content {
				if m.Content[j].ToolUse != nil {
					calls++
				}
			}
		}
	}
	return messages, calls
}
