// Package provider is the wire JSON of model providers: what their requests and
// responses look like, turned into session entries and back.
//
// The packages below it know one provider each: openai (Chat Completions and
// Responses), anthropic (Messages), google (Gemini contents) and bedrock
// (Converse). They have the same shape:
//
//   - Decode reads a body, whatever it is: a request, a response, a list of
//     messages, or a single one;
//   - Encode writes the entries of a session.Context as the messages of a
//     request, and says what it could not take along;
//   - EncodeVerbatim does so for files, where what came from this format must come
//     back as it was;
//   - Check finds what the provider would refuse in a request;
//   - EncodeResponse writes the answer of a model as the provider would have;
//   - Fold makes one response of the events of a stream.
//
// A program that talks to a model calls Encode with what Session.Context returned,
// and Decode with what came back. There is no HTTP here. All functions may be
// called concurrently.
//
// # Nothing is lost
//
// What a body says and entries have no place for (unknown members, the way a
// text was written, ids of items) is kept with the entry, as an unknown member
// with the name of the wire format. EncodeVerbatim gives it back:
// a body that is decoded and encoded verbatim has equal JSON values. Blocks of
// unknown types are kept whole, byte for byte.
//
// # Rules
//
// Providers refuse a call without its result in the next message, a result without
// its call, two calls with one id, empty texts, roles that do not take turns, and
// more. Logs have all of that: programs crash, and each keeps a reply in its own
// way. Session.Context gives every call its result; Encode does the rest, so that
// Check finds nothing in what it wrote. Each rule is stated once, in the Check of
// its provider.
//
// # Stable bytes
//
// The same entries are encoded to the same bytes, always, and a longer context
// begins with the bytes of a shorter one, because prompt caches compare bytes.
package provider
