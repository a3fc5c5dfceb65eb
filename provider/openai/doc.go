// Package openai is the wire JSON of OpenAI's two ways to talk to a model, Chat
// Completions and Responses, and of the many services that speak the former.
package openai

// providerName is what messages and errors name the provider.
const providerName = "openai"
