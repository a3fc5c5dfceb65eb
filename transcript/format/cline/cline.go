// Package cline reads the tasks of Cline and of its forks Roo Code and Kilo Code: a list of
// messages in Anthropic's form, with their cost in a file beside it. It also reads the
// sessions of Cline 3.
package cline

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/blocks"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/place"
	"github.com/coppice-dev/coppice/transcript/internal/records"
)

const name = "cline"

// historyFile holds the messages of a task.
const historyFile = "api_conversation_history.json"

// Format returns the format of Cline, Roo Code and Kilo Code.
func Format() *transcript.Format {
	return &transcript.Format{Name: name, Title: "Cline and Roo Code", Detect: detect, Read: read, Places: places}
}

// detect needs the file's name for a task: its content is a list of messages like any
// other.
func detect(f *transcript.File) bool { return filepath.Base(f.Path) == historyFile || isSession(f) }

// extensions are the names of the extensions in VS Code's storage.
var extensions = []string{"saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline", "kilocode.kilo-code"}

// editors are VS Code and its forks.
var editors = []string{"Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"}

func places(env transcript.Env) []transcript.Place {
	list := slices.Concat(
		place.In(filepath.Join(env.Home, ".cline", "data", "tasks"), historyFile),
		place.In(sessionDir(env), "*"+sessionEnding),
	)
	for _, editor := range editors {
		for _, extension := range extensions {
			dir := filepath.Join(place.Config(env), editor, "User", "globalStorage", extension, "tasks")
			list = append(list, place.In(dir, historyFile)...)
		}
	}
	return list
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	if isSession(f) {
		return readSession(ctx, f, to)
	}
	list, err := records.Whole(f)
	if err != nil {
		return err
	}
	if !list.IsArray() {
		return records.Refuse(f, errNotList)
	}
	r := &reader{to: to, from: []transcript.Span{list.Span}}
	if err := r.begin(f, list.Value); err != nil {
		return err
	}
	for v := range list.Items() {
		if err := r.message(v); err != nil {
			return err
		}
	}
	return nil
}

type reader struct {
	to       transcript.Sink
	from     []transcript.Span
	task     string
	requests []request // in the order in which they were made
}

// request is what is known of a request to the model.
type request struct {
	time  time.Time
	usage *session.Usage
}

// begin announces the task to the sink. Its id is the name of its directory: the time at
// which it began, or a UUID.
func (r *reader) begin(f *transcript.File, list loose.Value) error {
	r.task = path.Base(path.Dir(filepath.ToSlash(f.Path)))
	if r.task == "." || r.task == "/" {
		r.task = transcript.HashID(name, f.Path)
	}
	c := transcript.Conversation{ID: r.task, Created: loose.Value(r.task).Time(time.UTC)}
	first := firstText(list)
	if found := cwdPattern().FindStringSubmatch(first); found != nil {
		c.CWD = found[1]
	}
	if found := taskPattern().FindStringSubmatch(first); found != nil {
		c.Title = title(found[1])
	}
	if err := r.readRequests(f); err != nil {
		return err
	}
	return r.to.Begin(c)
}

var (
	// cwdPattern finds the working directory in the text sent to the model.
	cwdPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`# Current (?:Working|Workspace) Directory \(([^)\n]+)\)`)
	})
	// taskPattern finds the first prompt.
	taskPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)<(?:task|user_message)>\s*(.*?)\s*</(?:task|user_message)>`)
	})
)

// title turns a prompt into a title: its first line, shortened.
func title(prompt string) string {
	line, _, _ := strings.Cut(prompt, "\n")
	if runes := []rune(line); len(runes) > 80 {
		line = string(runes[:80]) + "…"
	}
	return line
}

// firstText returns the text of the first message.
func firstText(list loose.Value) string {
	content := list.First().Get("content")
	if content.IsString() {
		return content.Text()
	}
	var texts []string
	for block := range content.Items() {
		texts = append(texts, block.Get("text").Text())
	}
	return strings.Join(texts, "\n")
}

// readRequests reads what the requests cost from the messages that were shown.
func (r *reader) readRequests(f *transcript.File) error {
	data, err := f.Beside("ui_messages.json")
	if err != nil {
		return nil // the file is missing or unreadable
	}
	if _, err := r.to.Keep("ui_messages.json", data); err != nil {
		return err
	}
	shown, err := loose.Parse(data)
	if err != nil {
		r.to.Problem(transcript.Problem{Reason: "ui_messages.json is not JSON: " + err.Error()})
		return nil
	}
	for v := range shown.Items() {
		if v.Get("say").Text() != "api_req_started" {
			r.to.Count("shown message", transcript.OnlyKept, 1)
			continue
		}
		r.to.Count("request", "usage", 1)
		info := loose.Value(v.Get("text").Text())
		r.requests = append(r.requests, request{time: v.Get("ts").Time(time.UTC), usage: usageOf(info)})
	}
	return nil
}

func usageOf(v loose.Value) *session.Usage {
	if !v.Has("tokensIn") {
		return nil
	}
	return &session.Usage{
		Input: v.Get("tokensIn").Int(), Output: v.Get("tokensOut").Int(),
		CacheRead: v.Get("cacheReads").Int(), CacheWrite: v.Get("cacheWrites").Int(),
		CostMicroUSD: session.MicroUSD(v.Get("cost").Number()),
	}
}

// message adds a message. The requests were made in the order of the answers.
func (r *reader) message(v loose.Value) error {
	entries, err := anthropic.DecodeMessage(v)
	if err != nil {
		r.to.Problem(transcript.Problem{Reason: err.Error()})
		return nil
	}
	r.to.Count(v.Get("role").Text()+" message", "message", 1)
	at := v.Get("ts").Time(time.UTC)
	for _, e := range entries {
		if e.Message.Role == session.RoleAssistant {
			r.answered(e.Message, &at)
		}
		e.Message.Extra = withoutResidue(e.Message.Extra)
		blocks.MarkInjected(e.Message, isInjected)
		e.Timestamp = at
		if err := r.to.Add(transcript.Record{Entry: e, From: r.from}); err != nil {
			return err
		}
	}
	return nil
}

// withoutResidue leaves out the residue of Anthropic's API.
func withoutResidue(extra session.Fields) session.Fields {
	return slices.DeleteFunc(extra, func(f session.Field) bool { return f.Name == "anthropic" })
}

func (r *reader) answered(m *session.MessageEntry, at *time.Time) {
	if len(r.requests) == 0 {
		return
	}
	next := r.requests[0]
	r.requests = r.requests[1:]
	m.Usage = next.usage
	if at.IsZero() {
		*at = next.time
	}
	if m.Usage != nil {
		m.ResponseID = r.task + ":" + next.time.Format(time.RFC3339Nano)
	}
}

// isInjected recognises text of the extension itself: details of the environment, and tool
// results written as text.
func isInjected(text string) bool {
	return strings.HasPrefix(text, "<environment_details>") || toolText().MatchString(text) || strings.HasPrefix(text, "[ERROR]")
}

// toolText matches the beginning of a tool result written as text.
var toolText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\[[a-z_]+(?: for '.*')?\] Result:`) })

var errNotList = errors.New("it is not a list of messages")
