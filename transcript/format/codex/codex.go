// Package codex reads and writes the rollouts of OpenAI's Codex.
//
// A rollout is a log of what happened in a thread: items, which are what the model was sent
// and what it answered, and events, which the person saw. Most messages are in it
// twice, as an item and as an event. Messages are made from the items; events say what a
// response cost, that a turn was taken back, or that a command failed. Only a rollout without
// items is read from its events.
//
// There were four ways to write it: one JSON document of items (until July 2025),
// bare items line by line (until September 2025), items and events in envelopes
// (since), and envelopes whose content is beside their type. The output of "codex exec
// --json" is a fifth.
//
// # Identity
//
// Few items have an id. A record is named by a hash of the record before it and
// of what it says, so that a fork, which repeats its original's items, has the
// same records under the same names.
package codex

import (
	"path/filepath"
	"strings"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/place"
)

const name = "codex"

// Format returns Codex's format.
func Format() *transcript.Format {
	return &transcript.Format{
		Name: name, Title: "Codex",
		Detect: detect, Read: read, Places: places, Resume: resume, Write: write,
	}
}

func detect(f *transcript.File) bool {
	if isDocument(f) {
		return true
	}
	first := jsonl.First(f)
	switch kind := first.Get("type").Text(); {
	case envelopes[kind]:
		return first.Get("payload").IsObject() || kind == kindMeta && first.Has("id")
	case kind == "thread.started":
		return first.Has("thread_id")
	case kind == "":
		return isBareHeader(first)
	}
	return false
}

// envelopes are the types of lines that hold something else.
var envelopes = map[string]bool{
	kindMeta: true, kindItem: true, kindEvent: true, kindContext: true, kindCompacted: true, kindWorld: true,
}

const (
	kindMeta      = "session_meta"
	kindItem      = "response_item"
	kindEvent     = "event_msg"
	kindContext   = "turn_context"
	kindCompacted = "compacted"
	kindWorld     = "world_state"
)

// isBareHeader recognises the header of the bare era, which has no type.
func isBareHeader(v loose.Value) bool {
	return v.Get("id").IsString() && v.Has("timestamp") && v.Get("instructions") != nil &&
		len(v.Except("id", "timestamp", "instructions", "git", "cwd", "originator", "cli_version", "source")) == 0
}

// isDocument recognises a rollout that is one document: {"session":…,"items":[…]}.
func isDocument(f *transcript.File) bool {
	head := strings.TrimLeft(strings.TrimPrefix(f.HeadText(), "\xef\xbb\xbf"), " \t\r\n")
	rest, ok := strings.CutPrefix(head, "{")
	rest = strings.TrimLeft(rest, " \t\r\n")
	rest, isSession := strings.CutPrefix(rest, `"session"`)
	return ok && isSession && strings.Contains(rest, `"items"`) && strings.HasPrefix(strings.TrimLeft(rest, ": \t\r\n"), "{")
}

func places(env transcript.Env) []transcript.Place {
	home := env.Dir("CODEX_HOME", ".codex")
	isRollout := place.Named("rollout-*.jsonl", "rollout-*.jsonl.zst", "rollout-*.json")
	return []transcript.Place{
		{Dir: filepath.Join(home, "sessions"), Match: isRollout},
		{Dir: filepath.Join(home, "archived_sessions"), Match: isRollout},
	}
}
