package providertest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// Response writes what a model said as a provider gives it without streaming, in the dialect
// of a Request. Several answers are alternatives, or in "openai" the messages of one answer.
// What was decoded from such a response comes back with equal values. The notes say what was
// left out.
func Response(dialect string, answers ...session.Entry) (json.RawMessage, []provider.Note, error) {
	d, ok := dialects[dialect]
	if !ok || len(answers) == 0 || dialect == "anthropic" && len(answers) > 1 {
		return nil, nil, fmt.Errorf("no response in the dialect %q has %d answers", dialect, len(answers))
	}
	size, items := 1, dialect == "openai" // whose items may be anybody's
	if items {
		size = len(answers)
	}
	var whole rawjson.Members
	var notes []provider.Note
	for i := 0; i < len(answers); i += size {
		e := &answers[i+size-1]
		if e.Message == nil || !items && e.Message.Role != session.RoleAssistant {
			return nil, nil, fmt.Errorf("entry %s is not a message of a model", e.ID)
		}
		m, err := d.encode(answers[i : i+size])
		if err != nil {
			return nil, nil, err
		}
		a := answer{MessageEntry: e.Message, at: e.Timestamp, format: d.format, n: i}
		a.said, _ = rawjson.Elements(rawjson.Members(m.Fields).Get(d.list))
		a.kept, a.own = wire.ResidueOf(e.Message.Extra, d.format)
		d.response(&whole, &a)
		notes = append(notes, m.Notes...)
	}
	return whole.JSON(), notes, nil
}

// answer is the answer of a model.
type answer struct {
	*session.MessageEntry
	at     time.Time
	format string
	n      int               // which alternative it is
	said   []json.RawMessage // as it would be in a request
	kept   wire.Residue      // what a response had besides
	own    bool              // it is from such a response
}

// message returns the one message of an answer, or another if nothing is left of it.
func (a *answer) message(none string) rawjson.Members {
	if len(a.said) == 0 {
		return rawjson.MembersOf([]byte(none))
	}
	return rawjson.MembersOf(a.said[0])
}

// envelope returns the members around an answer in its response.
func (a *answer) envelope(name string) rawjson.Members {
	return rawjson.MembersOf(a.kept.Envelope.Get(name))
}

// about adds the model that answered, and the costs.
func (a *answer) about(o *rawjson.Members, id, model, usage string, counts func(u *session.Usage) rawjson.Members) {
	o.SetText(id, a.ResponseID)
	o.SetText(model, a.Model)
	if u := a.Usage; u == nil {
		return
	} else if given := rawjson.Members(u.Extra).Get(a.format); given != nil {
		o.Put(usage, given)
	} else {
		o.SetObject(usage, counts(u))
	}
}

// alternative adds one of several answers to a list.
func alternative(o *rawjson.Members, list string, one rawjson.Members) {
	before, _ := rawjson.Elements(o.Get(list))
	o.Put(list, rawjson.List(append(before, one.JSON())))
}

func anthropicResponse(o *rawjson.Members, a *answer) {
	*o = a.message(`{"role":"assistant","content":[]}`)
	o.SetStr("type", "message")
	o.SetText("stop_reason", a.StopReason)
	a.about(o, "id", "model", "usage", func(u *session.Usage) rawjson.Members {
		counts := members("input_tokens", u.Input, "cache_creation_input_tokens", u.CacheWrite,
			"cache_read_input_tokens", u.CacheRead, "output_tokens", u.Output)
		if u.CacheWriteHour > 0 {
			counts.SetObject("cache_creation", members("ephemeral_5m_input_tokens", max(u.CacheWrite-u.CacheWriteHour, 0),
				"ephemeral_1h_input_tokens", u.CacheWriteHour))
		}
		return counts
	})
	o.Merge(a.kept.Envelope)
}

func googleResponse(o *rawjson.Members, a *answer) {
	var candidate rawjson.Members
	if len(a.said) > 0 && a.kept.Form != "nothing" {
		candidate.Put("content", a.said[0])
	}
	candidate.SetText("finishReason", wire.GoogleStops.Encode(a.StopReason))
	candidate.Merge(a.envelope("candidate"))
	if alternative(o, "candidates", candidate); a.n > 0 {
		return
	}
	a.about(o, "responseId", "modelVersion", "usageMetadata", func(u *session.Usage) rawjson.Members {
		return members("promptTokenCount", u.Sent(), "cachedContentTokenCount", u.CacheRead,
			"candidatesTokenCount", max(u.Output-u.Reasoning, 0), "thoughtsTokenCount", u.Reasoning, "totalTokenCount", u.Sent()+u.Output)
	})
	o.Merge(a.envelope("response"))
}

func chatResponse(o *rawjson.Members, a *answer) {
	message := a.message(`{"role":"assistant","content":null}`)
	if !a.own {
		joinTexts(&message)
	}
	var choice rawjson.Members
	if len(a.kept.Envelope) == 0 {
		choice.Set("index", a.n)
	}
	choice.SetObject("message", message)
	choice.SetText("finish_reason", wire.ChatStops.Encode(a.StopReason))
	choice.Merge(a.envelope("choice"))
	if alternative(o, "choices", choice); a.n > 0 {
		return
	}
	if len(a.kept.Envelope) == 0 {
		o.SetStr("object", "chat.completion")
		o.Set("created", unix(a.at))
	}
	a.about(o, "id", "model", "usage", func(u *session.Usage) rawjson.Members {
		return members("prompt_tokens", u.Sent(), "completion_tokens", u.Output, "total_tokens", u.Sent()+u.Output,
			"prompt_tokens_details", members("cached_tokens", u.CacheRead),
			"completion_tokens_details", members("reasoning_tokens", u.Reasoning))
	})
	o.Merge(a.envelope("response"))
}

// joinTexts joins the texts of an answer: clients do not expect a list there.
func joinTexts(message *rawjson.Members) {
	parts, ok := rawjson.Elements(message.Get("content"))
	if !ok {
		return
	}
	var text strings.Builder
	for _, raw := range parts {
		part := rawjson.MembersOf(raw)
		if part.Str("type") != "text" {
			return
		}
		text.WriteString(part.Str("text"))
	}
	message.SetStr("content", text.String())
}

// unix returns a time in seconds since 1970, or 0 for an unknown time.
func unix(t time.Time) int64 { return max(t.Unix(), 0) }

func responsesResponse(o *rawjson.Members, a *answer) {
	if len(a.kept.Envelope) == 0 {
		*o = members("object", "response", "created_at", unix(a.at), "status", "completed")
		if reason := wire.ResponsesStops.Encode(a.StopReason); reason != a.StopReason {
			o.SetStr("status", "incomplete")
			o.SetObject("incomplete_details", members("reason", reason))
		}
	}
	a.about(o, "id", "model", "usage", func(u *session.Usage) rawjson.Members {
		return members("input_tokens", u.Sent(), "input_tokens_details", members("cached_tokens", u.CacheRead),
			"output_tokens", u.Output, "output_tokens_details", members("reasoning_tokens", u.Reasoning), "total_tokens", u.Sent()+u.Output)
	})
	o.Merge(a.envelope("response"))
	o.Put("output", rawjson.List(a.said))
}
