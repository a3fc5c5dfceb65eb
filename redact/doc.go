// Package redact finds secrets in text and takes them out: keys of clouds and
// services, tokens, private keys, passwords in connection strings, in .env lines
// and in JSON. Each is replaced by [REDACTED:kind].
//
//	clean, found := redact.Text(output)
//
// Text is for plain text, and JSON for a JSON value, whose strings are looked at
// as what they mean and not as how they are escaped; all other bytes stay as they
// are. Find only looks. A Scanner also finds secrets that it was told of.
//
// # What is a secret
//
// Taking out what is no secret destroys a conversation as surely as leaving one in
// betrays its owner. So the rules are anchored: each begins at a few fixed bytes (a
// token's public prefix, the name of a variable) and then wants the length, the
// alphabet and the randomness of the real thing. Hashes, UUIDs, base64 images and
// stand-ins such as YOUR_API_KEY, <token>, ${VAR}, xxxx and AKIAIOSFODNN7EXAMPLE
// are left alone. What no rule knows is not found: a password in prose, say.
//
// Signatures of models' thoughts, and thoughts that a provider has encrypted, are
// never changed in JSON: the provider wants them back as they were.
//
// # What holds
//
// The time that a text takes grows with its length and no faster, however hostile
// the text is. Text without findings comes back byte for byte. Redacting twice is
// redacting once. JSON stays JSON. A Finding never has the secret in it. All
// functions may be called concurrently; they keep nothing.
package redact
