package home

import (
	"context"
	"testing"
)

// ConnectWith connects with MCP servers in another way while a test runs, which must not be
// parallel to others.
func ConnectWith(t *testing.T, connect func(ctx context.Context, s ToolServer) (Tools, error)) {
	before := parts.Connect
	parts.Connect = connect
	t.Cleanup(func() { parts.Connect = before })
}
