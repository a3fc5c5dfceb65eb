// Package claudecode reads and writes the transcripts of Claude Code.
//
// A transcript is a file of JSON lines: some are nodes of a tree of messages,
// some say something about the session, and most of what the program shows while
// it works is there too. One reply of the model is several lines, one for each
// block, with the results of its tool calls between them; here it is one message
// again. What is not conversation is kept as bytes and counted.
package claudecode

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

// Name is the format's name.
const Name = "claude-code"

// Format returns the format.
func Format() *transcript.Format {
	return &transcript.Format{
		Name:   Name,
		Title:  "Claude Code",
		Detect: detect,
		Read:   read,
		Places: places,
		Resume: resume,
		Write:  write,
	}
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	if isWeb(f) {
		return readWeb(ctx, f, to)
	}
	return newReader(ctx, f, to).read(ctx)
}

// metaTypes are the types of lines that are not part of the tree and that no other program
// writes.
var metaTypes = map[string]bool{
	"summary": true, "file-history-snapshot": true, "queue-operation": true, "custom-title": true, "ai-title": true,
	"agent-name": true, "agent-setting": true, "permission-mode": true, "mode": true, "last-prompt": true,
	"pr-link": true, "bridge-session": true, "frame-link": true, "worktree-state": true, "relocated": true,
}

// sniffed is how many lines are looked at.
const sniffed = 20

func detect(f *transcript.File) bool {
	if isWeb(f) {
		return true
	}
	head := f.Head()
	for range sniffed {
		text, rest, _ := bytes.Cut(head, []byte{'\n'})
		if isLine(text) {
			return true
		}
		if len(rest) == 0 {
			// A line may be longer than the head.
			seen := shape.OfFile(f)
			return seen.Has("parentUuid") && seen.Has("sessionId") &&
				!bytes.Contains(text, []byte(`"message":{"role":"model"`))
		}
		head = rest
	}
	return false
}

func isLine(text []byte) bool {
	var typ string
	var session, uuid, gemini bool
	err := rawjson.Object(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), func(key, value []byte) error {
		switch string(key) {
		case "type":
			typ, _ = rawjson.String(value)
		case "sessionId":
			session = rawjson.Kind(value) == 's'
		case "uuid":
			uuid = rawjson.Kind(value) == 's'
		case "message":
			gemini = bytes.Contains(value, []byte(`"parts":`)) && !bytes.Contains(value, []byte(`"content":`))
		}
		return nil
	})
	if err != nil || gemini { // Qwen Code has the same envelope
		return false
	}
	switch typ {
	case "user", "assistant", "system", "progress", "attachment":
		return session && uuid
	case "summary":
		return bytes.Contains(text, []byte(`"leafUuid"`))
	}
	return metaTypes[typ] && (session || bytes.Contains(text, []byte(`"messageId"`)))
}

// isWeb reports whether the file is a session of the web application: one
// document with the lines in a list.
func isWeb(f *transcript.File) bool {
	head := bytes.TrimLeft(f.Head(), " \t\r\n\ufeff")
	if len(head) == 0 || head[0] != '{' {
		return false
	}
	rest := bytes.TrimLeft(head[1:], " \t\r\n")
	return bytes.HasPrefix(rest, []byte(`"loglines"`)) ||
		bytes.Contains(head, []byte(`"loglines":`)) && strings.HasSuffix(f.Path, ".json")
}

func places(env transcript.Env) []transcript.Place {
	match := func(path string) bool {
		return strings.HasSuffix(path, ".jsonl") && !strings.Contains(path, "/tool-results/")
	}
	list := []transcript.Place{{Dir: filepath.Join(env.Dir("CLAUDE_CONFIG_DIR", ".claude"), "projects"), Match: match}}
	if env.Getenv("CLAUDE_CONFIG_DIR") == "" {
		list = append(list, transcript.Place{Dir: filepath.Join(env.Home, ".config", "claude", "projects"), Match: match})
	}
	return list
}

// encodeDir returns the name of the directory for the sessions about another.
func encodeDir(cwd string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, cwd)
}

// fileID returns the id that a file's name gives: of a session, or of an agent.
func fileID(path string) (id string, agent bool) {
	base := filepath.Base(path)
	base = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(base, ".gz"), ".zst"), ".jsonl")
	if id, ok := strings.CutPrefix(base, "agent-"); ok {
		return id, true
	}
	if isUUID(base) {
		return base, false
	}
	return "", false
}

// state is what a reader saves for the next time.
type state struct {
	ID     string   `json:"id"`
	Family string   `json:"family"`
	CWD    string   `json:"cwd"`
	Branch string   `json:"branch"` // of git
	Tail   string   `json:"tail"`   // the last record
	Lines  []string `json:"lines"`  // the lines that lead to it: what follows one of them follows the tail
	Titles titles   `json:"titles"`
}

func (s *state) encode() json.RawMessage {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return raw
}
