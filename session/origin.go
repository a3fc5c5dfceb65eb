package session

import (
	"encoding/json"
)

// OriginField is the member of a header that says where a session comes from: see
// Origin.
const OriginField = "origin"

// Origin is where an imported session comes from.
type Origin struct {
	Format string `json:"format"` // the program's, such as "claude-code"
	ID     string `json:"id"`     // of the conversation in that program
	Path   string `json:"path"`   // the file that it was read from
	// ParentCall is the tool call of the parent that started a subagent, if the
	// program records that.
	ParentCall string `json:"parent_call,omitempty"`
	// Facts are what else the program says about the conversation: an object, as JSON so that
	// every digit of a number stays.
	Facts json.RawMessage `json:"facts,omitempty"`
}

// OriginOf returns where a session comes from. ok is false for one that was not
// imported.
func OriginOf(h *Header) (o Origin, ok bool) {
	for _, f := range h.Extra {
		if f.Name == OriginField && json.Unmarshal(f.Value, &o) == nil && o.Format != "" {
			return o, true
		}
	}
	return Origin{}, false
}

// parentCallField is the member of a header that says which call started a subagent of ours.
const parentCallField = "parent_call"

// ParentCall returns the tool call that started a subagent, or "" if its program does not
// record that.
func ParentCall(h *Header) (call string) {
	if o, ok := OriginOf(h); ok {
		return o.ParentCall
	}
	for _, f := range h.Extra {
		if f.Name == parentCallField && json.Unmarshal(f.Value, &call) != nil {
			return ""
		}
	}
	return call
}

// OwnAgent is what AgentOf returns for a session that names no other program.
const OwnAgent = "coppice"

// AgentOf returns the program in which a session was held: the format that it was
// imported from, or what its header's "agent" says, or OwnAgent.
func AgentOf(h *Header) string {
	if o, ok := OriginOf(h); ok {
		return o.Format
	}
	for _, f := range h.Extra {
		var agent string
		if f.Name == "agent" && json.Unmarshal(f.Value, &agent) == nil && agent != "" {
			return agent
		}
	}
	return OwnAgent
}
