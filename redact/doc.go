// Package redact finds secrets in text and takes them out: keys of clouds and services,
// tokens, private keys, passwords in connection strings, in .env lines and in JSON. Each
// is replaced by [REDACTED:kind].
//
//	clean, found := redact.Text(output)
//
// Text is for plain text. JSON is for a JSON value: it searches the decoded strings, so
// escapes hide nothing, and leaves all other bytes as they are. Find only searches. A
// Scanner also finds secrets whose values it was given.
//
// # What counts as a secret
//
// Removing something that is not a secret damages a conversation; missing a secret exposes
// its owner. So every rule is anchored. It starts at a few fixed bytes (a token's public
// prefix, the name of a variable) and then requires the length, alphabet and randomness of
// a real secret. Hashes, UUIDs, base64 images and placeholders such as YOUR_API_KEY,
// <token>, ${VAR}, xxxx and AKIAIOSFODNN7EXAMPLE are left alone. What no rule covers is not
// found: a password in prose, for example.
//
// In JSON, signatures of models' thoughts, and thoughts that a provider has encrypted, are
// never changed, because the provider needs them back unchanged.
//
// # What always holds
//
// The time is linear in the length of the text, however hostile the text is. Text without
// findings is returned byte for byte. Redacting again changes nothing. JSON stays valid
// JSON. A Finding never contains the secret. All functions may be called concurrently and
// keep no state.
package redact
