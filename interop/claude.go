package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// visitClaude hands Claude Code an export.
func visitClaude(g *guest) {
	g.visit(func(x *exported) {
		g.ask("its SDK lists and reads the export", x.sdkReads)
	})
}

//go:embed sdk.mjs
var sdkScript []byte

// sdkSession is what the SDK says about a session.
type sdkSession struct {
	Info     *struct{ SessionID, CustomTitle, Summary, Cwd string }
	Messages []sdkMessage
	Subs     map[string][]sdkMessage
}

type sdkMessage struct {
	Type    string
	Message struct {
		Role    string
		Content json.RawMessage
	}
}

// sdkReads lets the Agent SDK list and read the session.
func (x *exported) sdkReads() error {
	s, err := x.g.sdk(x.native)
	if err != nil {
		return err
	}
	if s.Info == nil {
		return errors.New("the session is not listed")
	}
	var complaints []string
	if s.Info.CustomTitle != "The shed" {
		complaints = append(complaints, fmt.Sprintf("its title is %q", s.Info.CustomTitle))
	}
	complaints = append(complaints, x.shows(sdkFacts(s.Messages))...)
	complaints = append(complaints, x.unwanted([]byte(mustJSON(s.Messages)))...)
	if len(s.Subs) != 1 {
		complaints = append(complaints, fmt.Sprintf("it has %d subagents, not one", len(s.Subs)))
	}
	sub, err := x.g.facts(x.sub)
	if err != nil {
		return err
	}
	for _, messages := range s.Subs {
		complaints = append(complaints, compare(sub, sdkFacts(messages))...)
	}
	return wrong(complaints)
}

func sdkFacts(messages []sdkMessage) (facts []fact) {
	for _, m := range messages {
		for _, b := range anthropicBlocks(m.Message.Content) {
			facts = append(facts, b.facts(m.Message.Role)...)
		}
	}
	return facts
}

// sdk asks the Agent SDK about a session.
func (g *guest) sdk(id string) (*sdkSession, error) {
	script := filepath.Join(g.tmp(), "sdk.mjs")
	if err := os.WriteFile(script, sdkScript, 0o600); err != nil {
		return nil, err
	}
	sdk := filepath.Join(g.program.modules(g.cache), "@anthropic-ai", "claude-agent-sdk", "sdk.mjs")
	out, err := g.runs(node, g.env, script, sdk, id)
	if err != nil {
		return nil, err
	}
	g.save("sdk.json", []byte(out))
	s := &sdkSession{}
	return s, json.Unmarshal([]byte(out), s)
}
