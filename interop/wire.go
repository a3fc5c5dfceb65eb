package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// starts starts the command line, and returns the first line with a text in it.
func (g *guest) starts(text string, args ...string) (*process, string, error) {
	words := append([]string{"sh", "-c", `exec "$0" "$@" 2>&1`, g.coppicePath()}, args...)
	p, err := g.start([]string{"COPPICE_HOME=" + filepath.Join(g.dir, "sessions")}, words)
	if err != nil {
		return nil, "", err
	}
	line, err := p.until(text)
	if err != nil {
		p.stop()
	}
	return p, line, err
}

const (
	otters  = "How do otters sleep?"
	message = `{"role": "user", "content": [{"type": "text", "text": "` + otters + `"}]}`
)

// visitCurl uses a server as a person does who has only curl.
func visitCurl(g *guest) {
	g.ask("makes a session, says something and follows it", func() error {
		server, line, err := g.starts("serving ", "serve", "--addr", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer server.stop()
		_, address, _ := strings.Cut(line, " at ")
		token, err := server.until("cop_")
		if err != nil {
			return err
		}
		with := []string{"-sS", "--fail-with-body", "-H", "Authorization: Bearer " + token}
		made, err := g.curl(append(with, "--json", `{"title": "Otters"}`, address+"/v1/sessions")...)
		if err != nil {
			return err
		}
		follow, err := g.start(nil, append([]string{"curl", "-N", "-H", "Accept: text/event-stream", address + "/v1/follow"}, with...))
		if err != nil {
			return err
		}
		defer follow.stop()
		if _, err := follow.until("event: begin"); err != nil {
			return err
		}
		said, err := g.curl(append(with, "--json", `{"message": `+message+`}`, address+"/v1/sessions/"+made["session"]+"/entries")...)
		if err != nil {
			return err
		}
		if heard, err := follow.until(otters); err != nil || !strings.Contains(heard, said["entry"]) {
			return fmt.Errorf("%s was said, and %s heard: %w", said["entry"], heard, err)
		}
		refused, err := g.run("-sS", address+"/v1/sessions")
		if err != nil || !strings.Contains(refused, `"unauthorized"`) {
			return fmt.Errorf("without a token: %s, %w", refused, err)
		}
		return nil
	})
}

// curl returns the texts in a JSON object that the server answers.
func (g *guest) curl(args ...string) (map[string]string, error) {
	out, err := g.run(args...)
	if err != nil {
		return nil, err
	}
	var texts map[string]string
	return texts, json.Unmarshal([]byte(out), &texts)
}

// visitNetcat speaks both dialects of the socket by hand.
func visitNetcat(g *guest) {
	g.ask("speaks both dialects of the socket", func() error {
		socket := filepath.Join(g.tmp(), "s")
		server, _, err := g.starts(socket, "ipc", "--socket", socket)
		if err != nil {
			return err
		}
		defer server.stop()
		nc := append(g.program.command(g.cache), "-N", "-U", socket)
		for _, c := range []struct{ says, hears string }{
			{`{"type":"session_create","title":"Otters"}`, `"type":"session_created"`},
			{`{"jsonrpc":"2.0","id":1,"method":"entries.append","params":{"session":"last","message":` + message + `}}`, `"entry":`},
			{`{"type":"session_list","limit":3}`, `"message_count":1`},
			{`{"type":"session_load","session_id":"nothing"}`, `"kind":"not_found"`},
			{`{"jsonrpc":"2.0","id":2,"method":"no.such"}`, `-32601`},
		} {
			out, err := g.exec("nc", nil, append([]string{"sh", "-c", `echo "$0" | "$@"`, c.says}, nc...))
			if err != nil || !strings.Contains(out, c.hears) {
				return fmt.Errorf("%s is answered %s: %w", c.says, out, err)
			}
		}
		follow, err := g.start(nil, nc)
		if err != nil {
			return err
		}
		defer follow.stop()
		// The same connection gets the last entry first, and then the new one.
		for i, says := range []string{
			`{"jsonrpc":"2.0","id":"f","method":"entries.follow","params":{"session":"last","last":1}}`,
			`{"jsonrpc":"2.0","id":"a","method":"entries.append","params":{"session":"last","message":` + strings.Replace(message, otters, "And now?", 1) + `}}`,
		} {
			if _, err := fmt.Fprintln(follow.in, says); err != nil {
				return err
			}
			if heard, err := follow.until([]string{otters, "And now?"}[i]); err != nil || !strings.Contains(heard, `"method":"entries.follow.event"`) {
				return errors.Join(err, fmt.Errorf("after %s comes %s", says, heard))
			}
		}
		return nil
	})
}
