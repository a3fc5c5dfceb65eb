// Package server offers the operations of a home to other programs over HTTP.
//
// Routes, schemas, checks and answers come from home.Operations: a new operation is a row
// there and needs nothing here.
//
//	s, err := server.New(server.Options{Home: h, Authorize: tokens.Authorize})
//	if err != nil {
//		return err
//	}
//	err = s.Serve(ctx, listener) // until ctx ends; what has begun is finished
//
// A request passes, in this order: a log line and a count (watch.go), the checks of the
// caller, the host and the origin (admit.go), and its operation (operation.go). The answer is
// JSON, or a stream of what the operation sends (answer.go); an error is
// application/problem+json (problem.go).
//
// # What it promises
//
// A caller sees and changes only what its Grant allows, and what it may not see does not
// exist for it. One caller cannot slow another down: bodies, times and the number of
// concurrent requests have limits, and listeners do not hold up the work. An answered request
// is as durable as in the home itself.
package server
