// Package provider converts between the wire JSON of model providers, their requests and
// responses, and session entries.
//
// Each package below it knows one provider: openai (Chat Completions and Responses),
// anthropic (Messages), google (Gemini contents) and bedrock (Converse). These are their
// functions; openai has each twice, with Chat or Responses in its name, and bedrock has only
// Decode:
//
//   - Decode reads a body of any kind: a request, a response, a list of messages, or a
//     single message;
//   - Encode writes the entries of a session.Context as the messages of a request, and
//     reports what it could not send;
//   - EncodeVerbatim does the same for files, where a body of this format must come back
//     as it was;
//   - Check finds what the provider would refuse in a request;
//   - EncodeRequest writes a whole request: the context, tools, settings;
//   - a Stream decodes an answer as it arrives; Fold combines the events of one into a
//     response.
//
// All functions may be called concurrently.
//
// # Models
//
// A Model answers a Request, which has the entries of a session.Context, as a stream of
// typed Events that ends with the whole message. Respond asks a model. Package client has
// the models of providers and of compatible servers; package offline has a built-in one.
// There is no HTTP in this package.
//
// What arrives before a connection breaks is kept: the last event has it, marked as
// partial. A model that does not answer returns one of a few errors, the same for all
// providers: ErrOverflow, ErrLimited, ErrDenied, ErrUnavailable, ErrBroken.
//
// What the models of each family take besides the conversation is a table, models.txt: see
// Family. A model that is not in it is sent only what an API cannot do without.
//
// # Nothing is lost
//
// If a body contains something that entries have no field for (unknown members, the way a
// text was written, ids of items), it is kept with the entry, as an unknown member with
// the name of the wire format. EncodeVerbatim restores it: decoding a body and encoding it
// verbatim gives equal JSON values. Blocks of unknown types are kept whole,
// byte for byte.
//
// # Rules
//
// Providers refuse a call without its result in the next message, a result without
// its call, two calls with one id, empty texts, roles that do not take turns, and
// more. Logs contain all of that: programs crash, and each keeps a reply in its own
// way. Session.Context gives every call its result; Encode does the rest, so that Check
// finds nothing in what it wrote. Each rule is stated once, in the Check of its
// provider.
//
// # Stable bytes
//
// The same entries always encode to the same bytes, and a longer context begins with the
// bytes of a shorter one, because prompt caches compare bytes.
package provider
