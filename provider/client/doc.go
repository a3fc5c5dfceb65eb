// Package client talks to model providers over HTTP: Anthropic, OpenAI (Responses
// and Chat Completions), Google, and every server that speaks Chat Completions,
// such as Ollama, vLLM, llama.cpp and LM Studio.
//
//	model, err := client.New(client.Options{Provider: "anthropic", Model: "claude-sonnet-4-5"})
//	response, err := provider.Respond(ctx, model, request, func(e provider.Event) {
//		fmt.Print(e.Text)
//	})
//
// # Retries
//
// A request that failed before any of its answer arrived is sent again, up to
// Options.Retries times, if that can help: the provider was busy, or there was no
// connection. The wait grows with each attempt and is never shorter than the
// provider asks for. Each is announced by an EventRetry, with the costs of the failed attempt.
// Once something of the answer has been yielded, nothing is sent again: what has
// arrived is returned with the error, and the caller decides. An agent decides about all
// retries itself (Request.Once), so that there is one count.
//
// # Keys
//
// Keys come from a KeyFunc, which is asked for each attempt. They go into one
// header, and nowhere else: they are taken out of errors, and redirects to another
// host are not followed, whichever HTTP client is used.
package client
