package wire

import "github.com/coppice-dev/coppice/provider"

// Stops translates between a wire format's reasons to stop and Coppice's.
type Stops struct {
	In  map[string]string // from the wire
	Out map[string]string // to the wire, where several lead to one
}

// Decode returns the reason, and what must be kept to write the same again, which is "" if
// the reason alone is enough.
func (s Stops) Decode(native string) (reason, keep string) {
	reason, ok := s.In[native]
	if !ok {
		reason = native
	}
	if s.Encode(reason) != native {
		keep = native
	}
	return reason, keep
}

// Encode returns the wire format's name for a reason.
func (s Stops) Encode(reason string) string {
	if native, ok := s.Out[reason]; ok {
		return native
	}
	return reason
}

// GoogleStops are the reasons to stop of Gemini.
var GoogleStops = Stops{
	In: map[string]string{
		"STOP": provider.StopEndTurn, "MAX_TOKENS": provider.StopMaxTokens, "SAFETY": provider.StopRefusal,
		"RECITATION": provider.StopRefusal, "BLOCKLIST": provider.StopRefusal, "PROHIBITED_CONTENT": provider.StopRefusal,
		"SPII": provider.StopRefusal, "IMAGE_SAFETY": provider.StopRefusal,
	},
	Out: map[string]string{
		provider.StopEndTurn: "STOP", provider.StopToolUse: "STOP", provider.StopSequence: "STOP", provider.StopPause: "STOP",
		provider.StopMaxTokens: "MAX_TOKENS", provider.StopRefusal: "SAFETY",
	},
}

// ChatStops are the reasons to stop of Chat Completions. A call in the old form has its own.
var ChatStops = Stops{
	In: map[string]string{
		"stop": provider.StopEndTurn, "length": provider.StopMaxTokens, "tool_calls": provider.StopToolUse,
		"function_call": provider.StopToolUse, "content_filter": provider.StopRefusal,
	},
	Out: map[string]string{
		provider.StopEndTurn: "stop", provider.StopSequence: "stop", provider.StopPause: "stop", provider.StopMaxTokens: "length",
		provider.StopToolUse: "tool_calls", provider.StopRefusal: "content_filter",
	},
}

// ResponsesStops are the reasons to stop in incomplete_details; a complete response has none.
var ResponsesStops = Stops{
	In:  map[string]string{"max_output_tokens": provider.StopMaxTokens, "content_filter": provider.StopRefusal},
	Out: map[string]string{provider.StopMaxTokens: "max_output_tokens", provider.StopRefusal: "content_filter"},
}
