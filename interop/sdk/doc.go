// Package sdk has only tests. They hold package provider and its clients against
// the official SDKs of Anthropic, OpenAI and Google:
//
//   - requests that Coppice writes are read into the SDK's own types, sent by the SDK,
//     and arrive with equal values;
//   - responses mean the same to both, whole and streamed;
//   - a conversation that one side had is continued by the other;
//   - both take the same errors for the same thing.
//
// The server is providertest's: it listens on this machine, speaks four dialects,
// and refuses what the providers refuse.
//
// The program in vocabulary writes the vocabularies of package window/tiktoken, and its
// tests hold that package against another tokenizer.
//
// It is a module of its own, so that those who import Coppice do not inherit the
// SDKs and that tokenizer. make sdk runs it.
package sdk
