// Package geminicli reads and writes the chat recordings of Gemini CLI.
//
// A recording is a list of messages: what the user typed and what Gemini answered, with its
// thoughts, its calls and their results all in one message. Old recordings are one JSON
// document. New ones are logs of operations: a message whose id was there before replaces
// that one, {"$set":…} changes the conversation's facts or all of its messages, and
// {"$rewindTo":id} takes back a message and all after it. Messages that were taken back stay
// as a branch.
package geminicli

import (
	"path/filepath"
	"strings"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/place"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

const name = "gemini-cli"

// Format returns Gemini CLI's format.
func Format() *transcript.Format {
	return &transcript.Format{
		Name: name, Title: "Gemini CLI",
		Detect: detect, Read: read, Places: places, Resume: resume, Write: write,
	}
}

func detect(f *transcript.File) bool {
	return jsonl.First(f).Has("sessionId", "projectHash") || isDocument(f)
}

// isDocument recognises an old recording. Only its head is known, so we look for its members
// in the text.
func isDocument(f *transcript.File) bool {
	head := f.HeadText()
	if doc := loose.Try(f.Head()); doc != nil && !doc.Get("messages").IsArray() {
		return doc.Get("history").First().Has("role") && doc.Has("lastUpdated")
	}
	return strings.HasPrefix(strings.TrimLeft(head, "\ufeff \t\r\n"), "{") &&
		strings.Contains(head, `"projectHash"`) && isRecording(shape.OfFile(f)) && // a quick check first
		(!strings.HasSuffix(f.Path, ".jsonl") || jsonl.First(f) == nil) // an old recording under the newer name
}

func isRecording(seen *shape.Shape) bool {
	return seen.Has("sessionId") && seen.Has("projectHash") && seen.Has("messages")
}

func places(env transcript.Env) []transcript.Place {
	return []transcript.Place{{Dir: filepath.Join(geminiDir(env), "tmp"), Match: place.Below("chats", "*.json", "*.jsonl")}}
}

func geminiDir(env transcript.Env) string {
	return filepath.Join(env.Dir("GEMINI_CLI_HOME", ""), ".gemini")
}
