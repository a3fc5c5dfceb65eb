package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
)

const (
	maxDescription = 8 << 10  // bytes
	maxSchema      = 64 << 10 // bytes
)

// convert turns a server's list into tools. It leaves out tools that no provider would
// accept, and logs that.
func (s *Server) convert(found []*sdk.Tool) []agent.Tool {
	skip := func(t *sdk.Tool, why string) {
		s.opts.Logger.Warn("a tool of an MCP server is left out", "server", s.name, "tool", t.Name, "reason", why)
	}
	var list []agent.Tool
	names := newNames(s.name, found)
	seen := make(map[string]bool)
	for _, t := range found {
		if t == nil {
			continue
		}
		schema, err := schemaOf(t)
		switch {
		case t.Name == "":
			skip(t, "it has no name")
		case seen[t.Name]:
			skip(t, "another one has the same name")
		case err != nil:
			skip(t, err.Error())
		default:
			seen[t.Name] = true
			list = append(list, s.tool(t, names[t.Name], schema))
		}
	}
	slices.SortFunc(list, func(a, b agent.Tool) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (s *Server) tool(t *sdk.Tool, name string, schema json.RawMessage) agent.Tool {
	hints := t.Annotations
	if hints == nil {
		hints = &sdk.ToolAnnotations{}
	}
	reason := fmt.Sprintf("it is a tool of the MCP server %s", s.name)
	if hints.ReadOnlyHint {
		reason += ", which says that it only reads"
	}
	asks := !(hints.ReadOnlyHint && s.opts.TrustHints)
	return agent.Tool{
		Tool:       provider.Tool{Name: name, Description: description(t), Schema: schema},
		Repeatable: (hints.ReadOnlyHint || hints.IdempotentHint) && s.opts.TrustHints,
		Timeout:    s.opts.Timeout,
		Ask:        func(agent.Call) (bool, string) { return asks, reason },
		// Nothing is known here about the files that the server uses: it may be anywhere.
		Files: func(json.RawMessage) (read, changed []string) { return nil, nil },
		Run: func(ctx context.Context, call agent.Call) (agent.Result, error) {
			return s.call(ctx, t.Name, call.Input)
		},
	}
}

func description(t *sdk.Tool) string {
	text := t.Description
	if text == "" {
		text = t.Title
	}
	if len(text) > maxDescription {
		text = text[:maxDescription] + "…"
	}
	return strings.ToValidUTF8(strings.TrimSpace(text), "")
}

// schemaOf returns the schema of a tool's arguments, which providers want to be that of
// an object.
func schemaOf(t *sdk.Tool) (json.RawMessage, error) {
	raw, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil, err
	}
	if raw, err = rawjson.Compact(raw); err != nil {
		return nil, err
	}
	if bytes.Equal(raw, []byte("null")) {
		return nil, nil // no arguments
	}
	members, err := rawjson.ParseMembers(raw)
	switch {
	case err != nil:
		return nil, errors.New("the schema of its arguments is not an object")
	case len(raw) > maxSchema:
		return nil, fmt.Errorf("the schema of its arguments has %d bytes, which is more than %d", len(raw), maxSchema)
	case !members.Has("type"):
		members.SetStr("type", "object")
	case members.Str("type") != "object":
		return nil, errors.New("its arguments are not an object")
	}
	return members.JSON(), nil
}

// newNames gives the tools of a server names that every provider accepts. A name depends on
// the server's names for its tools and not on their order, so that it stays the same.
func newNames(prefix string, found []*sdk.Tool) map[string]string {
	names, taken := make(map[string]string), make(map[string]bool)
	original := make([]string, 0, len(found))
	for _, t := range found {
		if t != nil && t.Name != "" {
			original = append(original, t.Name)
		}
	}
	slices.Sort(original)
	for _, changed := range []bool{false, true} { // first the tools that can keep their names
		for _, name := range slices.Compact(slices.Clone(original)) {
			whole := prefix + "_" + name
			made := prefix + "_" + legal(name)
			if fits := whole == made && len(made) <= agent.MaxToolName; fits == changed {
				continue
			}
			if len(made) > agent.MaxToolName || taken[made] || legal(name) == "" {
				made = shortened(made, name)
			}
			names[name], taken[made] = made, true
		}
	}
	return names
}

// legal replaces the characters of a name that providers refuse.
func legal(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name), "_")
}

// shortened returns a unique name of limited length.
func shortened(made, original string) string {
	sum := sha256.Sum256([]byte(original))
	tag := "_" + hex.EncodeToString(sum[:4])
	return strings.TrimRight(made[:min(len(made), agent.MaxToolName-len(tag))], "_") + tag
}

// call asks the server to run a tool.
func (s *Server) call(ctx context.Context, name string, input json.RawMessage) (agent.Result, error) {
	ctx, stop := s.whileOpen(ctx)
	defer stop()
	l, err := s.connected(ctx)
	if err != nil {
		return failed(ctx, err)
	}
	s.count(1)
	defer s.count(-1)
	params := &sdk.CallToolParams{Name: name, Arguments: input}
	result, err := gate.Await(ctx, func() (*sdk.CallToolResult, error) { return l.session.CallTool(ctx, params) })
	var refused *jsonrpc.Error
	switch {
	case err == nil:
		s.recordSuccess()
		return s.result(result), nil
	case ctx.Err() != nil: // the server got the call, and may have done all, some or nothing of it
		return agent.Result{Text: fmt.Sprintf("[the MCP server %s was told that nobody waits for this call any more; it may still be working on it]", s.name)}, context.Cause(ctx)
	case errors.As(err, &refused): // the server works, and refuses the call
		s.recordSuccess()
		return agent.Result{Text: s.hidden(errors.New(refused.Message)).Error(), IsError: true}, nil
	}
	if l.breaks(ctx, err) {
		err = fmt.Errorf("the connection to the MCP server %s broke during the call, which may have been done or not: %w", s.name, l.explain(ctx, err))
	}
	return failed(ctx, s.hidden(err))
}

// failed returns a result that tells the model what went wrong, or an error if the turn
// was cancelled.
func failed(ctx context.Context, err error) (agent.Result, error) {
	if errors.Is(err, errClosed) {
		return agent.Result{}, err
	}
	if ctx.Err() != nil {
		return agent.Result{}, context.Cause(ctx)
	}
	return agent.Result{Text: err.Error(), IsError: true}, nil
}
