// Package openai reads and writes the JSON of OpenAI's two APIs, Chat Completions and
// Responses, and of the many services that speak the former. EncodeChatRequest and
// EncodeResponsesRequest write requests, ChatStream and ResponsesStream read streamed
// answers, and DecodeChat and DecodeResponses read any body. To talk to a model, begin with
// package provider/client.
package openai

// providerName is the provider's name in messages and errors.
const providerName = "openai"
