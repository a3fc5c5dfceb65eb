// Package google is the wire JSON of Gemini's contents, in both spellings of its
// names (inlineData and inline_data).
//
// Calls and results often have no ids. A result then answers the first open call
// of its name, and both get an id that is left out again when they are encoded.
package google
