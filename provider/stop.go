package provider

// The reasons why a model stopped, as in a message's StopReason. Other reasons are kept
// in the provider's own words.
const (
	StopEndTurn   = "end_turn"      // it had said everything
	StopToolUse   = "tool_use"      // it waits for the results of its calls
	StopMaxTokens = "max_tokens"    // it was cut off
	StopSequence  = "stop_sequence" // it reached a stop sequence
	StopRefusal   = "refusal"       // it, or a filter, refused to continue
	StopPause     = "pause_turn"    // it waits to be asked to continue
)

// IsCutOff reports whether an answer that stopped for this reason may lack its end, so
// that its calls must not be run: the token limit, a filter, and every reason that is not
// known here. A call that was cut off can look whole.
func IsCutOff(reason string) bool {
	switch reason {
	case "", StopEndTurn, StopToolUse, StopSequence, StopPause:
		return false
	}
	return true
}

// The reasons why an answer is not whole. No provider gives them: the connection to the
// model ended.
const (
	StopCancelled = "cancelled" // the caller no longer wanted it
	StopFailed    = "error"     // the provider failed, or the connection to it
)
