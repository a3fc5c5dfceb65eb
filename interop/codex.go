package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// visitCodex hands Codex an export.
func visitCodex(g *guest) {
	g.visit(func(x *exported) {
		g.ask("its app server lists and reads the export", x.codexReads)
	})
}

// codexReads lets Codex's app server list and read the conversation.
func (x *exported) codexReads() error {
	s, err := x.g.startCodex()
	if err != nil {
		return err
	}
	defer s.stop()
	var listed struct {
		Data []struct{ ID, Name, Cwd string }
	}
	if err := s.call("thread/list", object{"limit": 100, "modelProviders": []any{}, "sourceKinds": []string{"cli", "vscode", "exec", "appServer", "subAgent", "unknown"}}, &listed); err != nil {
		return err
	}
	var complaints []string
	i := slices.IndexFunc(listed.Data, func(t struct{ ID, Name, Cwd string }) bool { return t.ID == x.native })
	if i < 0 {
		return errors.New("the conversation is not listed")
	}
	if cwd := listed.Data[i].Cwd; cwd != x.g.project() {
		complaints = append(complaints, fmt.Sprintf("its directory is %q", cwd))
	}
	var read struct {
		Thread struct {
			Turns []struct {
				Items []struct {
					Type, Text string
					Content    []struct{ Type, Text string }
				}
			}
		}
	}
	if err := s.call("thread/read", object{"threadId": x.native, "includeTurns": true}, &read); err != nil {
		return err
	}
	var got []fact
	for _, turn := range read.Thread.Turns {
		for _, item := range turn.Items {
			switch item.Type {
			case "userMessage":
				for _, part := range item.Content {
					got = append(got, fact{Kind: factText, Role: "user", Text: part.Text})
				}
			case "agentMessage":
				got = append(got, fact{Kind: factText, Role: "assistant", Text: item.Text})
			}
		}
	}
	x.g.save("thread.json", []byte(mustJSON(read)))
	// It shows what people said, from the very beginning.
	want := slices.DeleteFunc(slices.Clone(x.want), func(f fact) bool { return f.Kind != factText || f.Role == "" })
	return wrong(append(complaints, compare(want, got)...))
}

// appServer is Codex's app server: JSON-RPC over its standard input and output.
type appServer struct {
	*process
	n int
}

func (g *guest) startCodex() (*appServer, error) {
	p, err := g.start(g.env, append(g.program.command(g.cache), "app-server"))
	if err != nil {
		return nil, err
	}
	s := &appServer{process: p}
	if err := s.call("initialize", object{"clientInfo": object{"name": "interop", "version": "1"}}, &struct{}{}); err != nil {
		s.stop()
		return nil, err
	}
	return s, s.send(object{"method": "initialized"})
}

func (s *appServer) send(v any) error {
	_, err := io.WriteString(s.in, mustJSON(v)+"\n")
	return err
}

// call calls a method and waits for its result.
func (s *appServer) call(method string, params, result any) error {
	s.n++
	if err := s.send(object{"id": s.n, "method": method, "params": params}); err != nil {
		return err
	}
	for {
		line, err := s.out.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		var answer struct {
			ID            int
			Result, Error json.RawMessage
		}
		if json.Unmarshal(line, &answer) != nil || answer.ID != s.n {
			continue // a notification
		}
		if answer.Error != nil {
			return fmt.Errorf("%s: %s", method, answer.Error)
		}
		return json.Unmarshal(answer.Result, result)
	}
}
