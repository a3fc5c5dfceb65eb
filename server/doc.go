// Package server offers the operations of a home to other programs by HTTP.
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
// A request passes, in this order: a log line and a count (watch.go), the checks of who asks
// and from where (admit.go), and its operation (operation.go). The answer is JSON, or a stream
// of what the operation sends (answer.go); an error is application/problem+json
// (problem.go).
//
// # What it promises
//
// A caller sees and changes only what its Grant allows, and what it does not see does not
// exist for it. One caller cannot hold another back: bodies, times and the number of requests
// at once have limits, and those who only listen have no part in the work. What was answered
// is as durable as in the home itself.
package server
