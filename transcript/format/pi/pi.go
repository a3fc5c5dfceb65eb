// Package pi reads and writes the session files of pi, and reads those of the
// programs that keep theirs as pi does: omp, OpenClaw and Clawdbot.
//
// A file is a header line and then one entry a line, each with the id of its parent: the same
// tree that a session is. Version 1 has no ids, and each entry follows the one before;
// versions 2 and 3 differ in the name of one role.
//
// Members that Coppice has no place for are kept with their entry, so that reading and
// writing gives equal JSON values: see package residue.
package pi

import (
	"path/filepath"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/place"
)

// name is the format's name, and that under which residues are kept.
const name = "pi"

// Format returns pi's format.
func Format() *transcript.Format {
	return &transcript.Format{
		Name: name, Title: "pi",
		Detect: detect, Read: read, Places: places, Resume: resume, Write: write,
	}
}

// detect looks for pi's header. Coppice's own header has a member version with the value 1,
// which pi's never has.
func detect(f *transcript.File) bool {
	head := jsonl.Head(f, 2)
	if len(head) > 1 && head[0].Get("type").Text() == "title" {
		head = head[1:]
	}
	return len(head) > 0 && head[0].Get("type").Text() == "session" &&
		head[0].Has("id", "cwd") && head[0].Get("version").Int() != 1
}

func places(env transcript.Env) []transcript.Place {
	dirs := []string{
		filepath.Join(agentDir(env), "sessions"),
		filepath.Join(env.Home, ".omp", "agent", "sessions"),
		filepath.Join(env.Home, ".openclaw", "agents"),
		filepath.Join(env.Home, ".clawdbot", "agents"),
	}
	if own := env.Getenv("PI_CODING_AGENT_SESSION_DIR"); filepath.IsAbs(own) {
		dirs = append(dirs, own)
	}
	var list []transcript.Place
	for _, dir := range dirs {
		list = append(list, place.In(dir, "*.jsonl")...)
	}
	return list
}

func agentDir(env transcript.Env) string { return env.Dir("PI_CODING_AGENT_DIR", ".pi/agent") }
