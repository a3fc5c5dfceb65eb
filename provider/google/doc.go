// Package google is the wire JSON of Gemini's contents, in both spellings of its
// names (inlineData and inline_data).
//
// Calls and results often have no ids. A result then answers the first open call with
// its name, and both get an id that Encode leaves out again.
package google

// providerName is what messages and errors name the provider.
const providerName = "google"
