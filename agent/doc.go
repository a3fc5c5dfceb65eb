// Package agent drives a model over a session: it sends what was said, runs the tools
// that the model calls, and repeats this until the model is done.
//
// Everything is logged before anything depends on it. The user's message is in the log
// before the model is asked, a call is there before its tool runs, and a result is
// there before the next request. So a program that dies at any moment, and starts
// again, finds everything that a person saw and everything that a tool may have done:
// see Agent.Resume.
//
//	s, err := session.Load(path) // or New, or Create in any store
//	if err != nil {
//		return err
//	}
//	defer s.Close()
//	a, err := agent.New(s, agent.Options{Model: model, Tools: tools})
//	if err != nil {
//		return err
//	}
//	defer a.Close()
//	out, err := a.Send(ctx, session.Text("Why does the test fail?"))
//	if err != nil {
//		return err
//	}
//	fmt.Println(session.TextOf(out.Message.Content))
//
// Package provider/client makes models, package agent/tools has tools that work in a
// directory; the example of this package has a tool of its own.
//
// An Agent is a loop that decides and a Keeper that writes down. A loop of your own can use
// the Keeper alone.
package agent
