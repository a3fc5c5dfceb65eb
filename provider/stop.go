package provider

// The reasons why a model stopped, as a message's StopReason has them. What a
// provider says besides stands there in the provider's own words.
const (
	StopEndTurn   = "end_turn"      // it had said everything
	StopToolUse   = "tool_use"      // it waits for the results of its calls
	StopMaxTokens = "max_tokens"    // it was cut off
	StopSequence  = "stop_sequence" // it came to a text at which it was to stop
	StopRefusal   = "refusal"       // it, or a filter, would not go on
	StopPause     = "pause_turn"    // it is to be asked to go on
)

// The reasons why an answer is not whole. No provider gives them: the way to the
// model ended.
const (
	StopCancelled = "cancelled" // the caller no longer wanted it
	StopFailed    = "error"     // the provider failed, or the connection to it
)
