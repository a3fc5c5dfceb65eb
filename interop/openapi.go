package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// document asks a server for its OpenAPI document, and puts it into a file.
func (g *guest) document(server string) (path string, err error) {
	r, err := http.NewRequestWithContext(g.ctx, http.MethodGet, server+"/openapi.json", nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+mcpToken)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s %w", resp.Status, err)
	}
	path = filepath.Join(g.project(), "openapi.json")
	return path, os.WriteFile(path, text, 0o600)
}

// visitRedocly has the linter of Redocly look at the document.
func visitRedocly(g *guest) {
	g.env = []string{"REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true"}
	g.ask("finds nothing wrong with the OpenAPI document", func() error {
		mcp, _, stop, err := g.serveMCP(nil)
		if err != nil {
			return err
		}
		defer stop()
		path, err := g.document(strings.TrimSuffix(mcp, "/mcp"))
		if err != nil {
			return err
		}
		// A warning is enough to fail.
		out, err := g.run("lint", "--extends", "recommended", "--format", "json", path)
		if err != nil {
			return err
		}
		var found struct {
			Totals struct{ Errors, Warnings int }
		}
		_, out, _ = strings.Cut(out, "{")
		if err := json.NewDecoder(strings.NewReader("{" + out)).Decode(&found); err != nil {
			return err
		}
		if n := found.Totals.Errors + found.Totals.Warnings; n > 0 {
			return fmt.Errorf("it finds %d faults:\n%s", n, out)
		}
		return nil
	})
}

//go:embed openapi.mts
var openAPIScript []byte

// visitOpenAPITypes reads a session with types that openapi-typescript makes of the document.
func visitOpenAPITypes(g *guest) {
	if !g.ask("gets a session", func() error {
		_, err := writeFixture(g.ctx, g.home.Store(), g.project())
		return err
	}) {
		return
	}
	g.ask("makes types with which a session is read", func() error {
		mcp, _, stop, err := g.serveMCP(nil)
		if err != nil {
			return err
		}
		defer stop()
		address := strings.TrimSuffix(mcp, "/mcp")
		path, err := g.document(address)
		if err != nil {
			return err
		}
		script := filepath.Join(g.project(), "openapi.mts")
		if err := os.WriteFile(script, openAPIScript, 0o600); err != nil {
			return err
		}
		if _, err := g.run(path, "-o", filepath.Join(g.project(), "coppice.d.ts")); err != nil {
			return err
		}
		compiler := filepath.Join(g.program.modules(g.cache), "typescript", "bin", "tsc")
		if out, err := g.runs(node, nil, compiler, "--noEmit", "--strict", "--target", "es2022", "--module", "nodenext",
			"--lib", "es2022,dom", "--allowImportingTsExtensions", script); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		out, err := g.runs(node, nil, script, address, mcpToken)
		if err != nil {
			return err
		}
		return typedGot([]byte(out))
	})
}

// typedGot checks what the script printed.
func typedGot(out []byte) error {
	var got struct {
		Session, Refused string
		Texts            []string
	}
	if err := json.Unmarshal(out, &got); err != nil {
		return err
	}
	const said = "north has 17 planks"
	if got.Refused != "unauthorized" || !slices.ContainsFunc(got.Texts, func(text string) bool { return strings.Contains(text, said) }) {
		return fmt.Errorf("%q is not in %.500q, or a wrong token is %q", said, got.Texts, got.Refused)
	}
	return nil
}
