package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/coppice-dev/coppice/store/vfs"
)

// visitPi hands pi an export.
func visitPi(g *guest) {
	g.visit(func(x *exported) {
		g.ask("reads the export and makes a page of it", x.piReads)
	})
}

// piData is where a page of pi's has the session: base64 of JSON.
var piData = regexp.MustCompile(`id="session-data"[^>]*>([A-Za-z0-9+/=\s]+)<`)

// piReads lets pi make a page of the conversation, and looks into it.
func (x *exported) piReads() error {
	page := filepath.Join(x.g.tmp(), "page.html")
	if _, err := x.g.run("--export", x.path, page); err != nil {
		return err
	}
	html, err := vfs.ReadFile(page, 0)
	if err != nil {
		return err
	}
	found := piData.FindSubmatch(html)
	if found == nil {
		return errors.New("the page has no session in it")
	}
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(found[1])), ""))
	if err != nil {
		return err
	}
	var complaints []string
	for _, f := range x.want {
		text := strings.Trim(mustJSON(f.Text), `"`)
		if !f.any && !strings.Contains(string(data), text) {
			complaints = append(complaints, fmt.Sprintf("%v is not on the page", f))
		}
	}
	// pi keeps all branches.
	for _, text := range x.gone {
		if !strings.Contains(string(data), text) {
			complaints = append(complaints, fmt.Sprintf("%q is not on the page", text))
		}
	}
	return wrong(complaints)
}
