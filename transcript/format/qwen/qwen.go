// Package qwen reads the chats of Qwen Code: a tree of records, each with a uuid
// and that of the record before it, whose messages are Gemini's contents.
package qwen

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/place"
	"github.com/coppice-dev/coppice/transcript/internal/records"
)

const name = "qwen"

// Format returns Qwen Code's format.
func Format() *transcript.Format {
	return &transcript.Format{Name: name, Title: "Qwen Code", Detect: detect, Read: read, Places: places, Resume: resume}
}

// detect distinguishes the chats from Claude Code's, which have the same envelope, by their
// content.
func detect(f *transcript.File) bool {
	if head := f.HeadText(); !strings.Contains(head, `"parts"`) && !strings.Contains(head, `"systemPayload"`) {
		return false // quicker than reading the lines
	}
	return slices.ContainsFunc(jsonl.Head(f, 20), func(v loose.Value) bool {
		if !v.Has("uuid", "sessionId") {
			return false
		}
		return v.Get("message", "parts").IsArray() || v.Get("type").Text() == "system" && v.Has("systemPayload")
	})
}

func resume(id string) []string { return []string{"qwen", "--resume", id} }

func places(env transcript.Env) []transcript.Place {
	return []transcript.Place{{Dir: filepath.Join(env.Dir("QWEN_HOME", ".qwen"), "projects"), Match: place.Below("chats", "*.jsonl")}}
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	r := &reader{file: f, to: to}
	return jsonl.Each(ctx, f, to, r.record)
}

type reader struct {
	file    *transcript.File
	to      transcript.Sink
	conv    transcript.Conversation
	begun   bool
	tree    jsonl.Tree
	decoder google.Decoder
	model   string
}

func (r *reader) record(o jsonl.Object) error {
	if err := r.begin(o.Value); err != nil {
		return err
	}
	entries, became, err := r.decode(o)
	if err != nil {
		return err
	}
	what := strings.TrimSpace(strings.Join([]string{o.Get("type").Text(), o.Get("subtype").Text()}, " "))
	r.to.Count(what+" record", became, 1)
	id, parent := o.Get("uuid").Text(), o.Get("parentUuid")
	if len(entries) == 0 {
		r.tree.Pass(id, parent.Text())
		return nil
	}
	rec := transcript.Record{ID: id, Parent: r.tree.Resolve(parent.Text()), From: []transcript.Span{o.Span}}
	rec.Entry.Timestamp = o.Get("timestamp").Time(time.UTC)
	if rec.Parent == "" && parent != nil {
		rec.Parent = transcript.Root
	}
	return records.AddParts(r.to, rec, ":", entries)
}

// begin announces the conversation to the sink, from the first record.
func (r *reader) begin(v loose.Value) error {
	if r.begun {
		return nil
	}
	r.begun = true
	r.conv = transcript.Conversation{ID: cmp.Or(v.Get("sessionId").Text(), transcript.HashID(name, r.file.Path)), CWD: v.Get("cwd").Text()}
	if branch := v.Get("gitBranch").Text(); branch != "" {
		r.conv.Extra = map[string]any{"git_branch": branch}
	}
	// A branch repeats its original's records under their uuids.
	if origin := v.Get("forkedFrom", "sessionId").Text(); origin != "" && origin != r.conv.ID {
		r.conv.Family = origin
	}
	if agent := v.Get("agentId").Text(); agent != "" && v.Get("isSidechain").Bool() {
		r.conv.Parent, r.conv.Relation = r.conv.ID, session.RelationSubagent
		r.conv.ID += ":" + agent
	}
	return r.to.Begin(r.conv)
}

// decode turns a record into entries, and says what it became.
func (r *reader) decode(o jsonl.Object) ([]session.Entry, string, error) {
	switch kind := o.Get("type").Text(); {
	case kind == "system":
		return r.system(o.Value)
	case o.Get("message").IsObject():
		entries, err := r.decoder.Content(o.Get("message").Raw())
		if err != nil {
			r.to.Problem(transcript.Problem{Pos: o.Span.Pos, Line: o.No, Reason: err.Error()})
			return nil, transcript.OnlyKept, nil
		}
		for _, e := range entries {
			r.finish(e.Message, o.Value)
		}
		return slices.DeleteFunc(entries, func(e session.Entry) bool { return len(e.Message.Content) == 0 }), "message", nil
	}
	return nil, transcript.OnlyKept, nil
}

// finish adds the members beside a message.
func (r *reader) finish(m *session.MessageEntry, v loose.Value) {
	switch m.Role {
	case session.RoleAssistant:
		m.Provider = "qwen"
		m.Model = cmp.Or(v.Get("model").Text(), r.model)
		m.Usage = provider.GeminiUsage(v.Get("usageMetadata"))
		m.ResponseID = v.Get("uuid").Text()
	case session.RoleTool:
		status := v.Get("toolCallResult", "status").Text()
		for i := range m.Content {
			if t := m.Content[i].ToolResult; t != nil && (status == "error" || status == "cancelled") {
				t.IsError = true
			}
		}
	case session.RoleUser:
		if subtype := v.Get("subtype").Text(); subtype != "" && subtype != "mid_turn_user_message" || isInjected(m.Content) {
			m.Metadata = map[string]any{session.MetaInjected: true}
		}
	}
}

func isInjected(content []session.Content) bool {
	if len(content) == 0 || content[0].Text == nil {
		return false
	}
	text := strings.TrimSpace(content[0].Text.Content)
	return strings.HasPrefix(text, "<system-reminder>") && strings.HasSuffix(text, "</system-reminder>") || strings.HasPrefix(text, "<session_context>")
}

// system reads a record that is not a message.
func (r *reader) system(v loose.Value) ([]session.Entry, string, error) {
	payload := v.Get("systemPayload")
	switch subtype := v.Get("subtype").Text(); subtype {
	case "chat_compression":
		summary := historyText(payload.Get("compressedHistory"))
		return []session.Entry{session.Compaction(summary, "", payload.Get("info", "originalTokenCount").Int())}, "compaction", nil
	case "custom_title":
		return nil, "title", r.to.Begin(transcript.Conversation{ID: r.conv.ID, Title: payload.Get("customTitle").Text()})
	case "parent_session":
		parent := payload.Get("parentSessionId").Text()
		return nil, "link", r.to.Begin(transcript.Conversation{ID: r.conv.ID, Parent: parent, Relation: session.RelationSubagent})
	case "session_model":
		if r.model = payload.Get("modelId").Text(); r.model == "" {
			return nil, transcript.OnlyKept, nil
		}
		return []session.Entry{session.ModelChange("qwen", r.model)}, "model change", nil
	case "slash_command", "rewind", "notification", "turn_result":
		return []session.Entry{session.Custom(name+"."+subtype, payload.Map())}, "custom entry", nil
	}
	return nil, transcript.OnlyKept, nil
}

// historyText returns the text of a history that replaces another: the summary, and what was
// kept.
func historyText(history loose.Value) string {
	var texts []string
	for content := range history.Items() {
		for part := range content.Get("parts").Items() {
			if text := part.Get("text").Text(); text != "" && !part.Get("thought").Bool() {
				texts = append(texts, text)
			}
		}
	}
	return strings.Join(texts, "\n\n")
}
