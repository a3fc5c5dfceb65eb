package session

import (
	"encoding/json"
)

// OwnAgent is what AgentOf says of a session that names no other program.
const OwnAgent = "coppice"

// AgentOf returns the program in which a session was held: the format that it was
// imported from, or what its header's "agent" says, or OwnAgent.
func AgentOf(h *Header) string {
	for _, f := range h.Extra {
		var origin struct{ Format string }
		var agent string
		switch {
		case f.Name == "origin" && json.Unmarshal(f.Value, &origin) == nil && origin.Format != "":
			return origin.Format
		case f.Name == "agent" && json.Unmarshal(f.Value, &agent) == nil && agent != "":
			return agent
		}
	}
	return OwnAgent
}
