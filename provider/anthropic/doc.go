// Package anthropic is the wire JSON of Anthropic's Messages.
//
// A user's message may hold tool results and text. Entries keep them apart: the results
// become a message of role tool, the text one of role user. Encoding joins them again.
package anthropic
