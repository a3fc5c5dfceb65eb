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
// Package provider/client makes models, and package agent/tools has tools that work in a
// directory. The example of this package defines a tool.
//
// Send, Resume and Retry each take a turn: the model is asked until it makes no more calls.
// Steer and FollowUp say something during a turn, and Subscribe shows what happens in it.
// Options.Approve decides about calls that need approval, at once or later (Decide), and
// Options.Hooks are called before and after each request and call. Answer returns a struct in
// place of text, and TaskTool lets a model hand work to another agent. When the window is
// nearly full, a summary replaces the beginning (Options.Compaction); with Options.Boundary,
// a long conversation continues in another session.
//
// An Agent consists of a loop, which decides, and a Keeper, which records. Your own loop can
// use the Keeper alone.
package agent
