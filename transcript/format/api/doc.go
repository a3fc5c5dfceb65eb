// Package api reads and writes conversations as the bodies of model providers'
// APIs: requests, responses, lists of messages and streams, as they are logged,
// saved, and made into data for training.
//
// A file holds one body, or many: an array of them, or one a line. Each body is a
// conversation; a request's other members (the model, tools, settings) are kept as facts of
// it. A file with one message on each line is one conversation.
package api
