package cli

import (
	"context"
	"encoding/json"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// gardener is a program that is an MCP server with one tool.
func gardener() {
	s := sdk.NewServer(&sdk.Implementation{Name: "garden", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "grow", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "beans grow"}}}, nil
		})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}
