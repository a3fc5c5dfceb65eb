// Package anthropic is the wire JSON of Anthropic's Messages.
//
// A user's message may hold tool results and words. Entries keep them apart: the
// results become a message of role tool, the words one of role user, and when
// they are encoded again they become one message.
package anthropic
