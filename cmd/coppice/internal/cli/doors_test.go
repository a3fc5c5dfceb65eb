package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
	"github.com/coppice-dev/coppice/server/mcp"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/remote"
)

// errNoDoor means that a door has nothing with which to write an entry.
var errNoDoor = errors.New("there is no such way")

// doorTest is a home with a session into which entries come.
type doorTest struct {
	*testing.T
	dir, id, entry string
	home           *home.Home
	web            string // the address of a server whose tokens are read, write and admin
}

func newDoorTest(t *testing.T) *doorTest {
	d := &doorTest{T: t, dir: t.TempDir()}
	h, err := home.Open(t.Context(), d.dir, &home.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	d.home = h
	made, err := h.Sessions.Create(t.Context(), home.CreateRequest{})
	if err == nil {
		d.id = made.Session
		var said *home.AppendResult
		said, err = h.Entries.Append(t.Context(), home.AppendRequest{Session: d.id, Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("hello")}}})
		d.entry = said.Entry
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Options{Home: h, Authorize: func(_ context.Context, token string) (*server.Grant, error) {
		for a := home.Read; a <= home.Admin; a++ {
			if a.String() == token {
				return &server.Grant{Name: token, Access: a}, nil
			}
		}
		return nil, server.ErrUnauthorized
	}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(func() { web.CloseClientConnections(); _ = s.Close(); web.Close() })
	d.web = web.URL
	return d
}

// doorKinds are the columns of the table: for each, what an entry of it is, and the operation that
// writes one.
var doorKinds = []struct {
	name  string
	entry func(d *doorTest) session.Entry
	op    string
}{
	{"messages", func(*doorTest) session.Entry { return session.Message(session.RoleUser, session.Text("a word")) }, "entries.append"},
	{"custom entries", func(*doorTest) session.Entry { return session.Custom("zoo.visit", map[string]any{"n": 1.0}) }, "entries.append"},
	{"labels", func(d *doorTest) session.Entry {
		return session.Entry{Type: session.TypeLabel, Label: &session.LabelEntry{TargetID: d.entry, Label: "here"}}
	}, "entries.label"},
	{"notes", func(*doorTest) session.Entry { return session.NewNote("a keeper", "order it") }, "entries.note"},
	{"the engine's", func(d *doorTest) session.Entry {
		e, _ := (&session.Queued{Session: d.id, Content: []session.Content{session.Text("obey")}}).Entry()
		return e
	}, "entries.append"},
}

// request returns the request with which an operation writes an entry.
func (d *doorTest) request(op string, e session.Entry) []byte {
	r := map[string]any{"session": d.id}
	switch op {
	case "entries.label":
		r["entry"], r["label"] = e.Label.TargetID, e.Label.Label
	case "entries.note":
		r["text"], r["by"] = "order it", "a keeper"
	default:
		if e.Message != nil {
			r["message"] = e.Message
			break
		}
		text, err := json.Marshal(map[string]any{"type": e.Type, string(e.Type): e.Custom})
		if err != nil {
			d.Fatal(err)
		}
		r["entry"] = json.RawMessage(text)
	}
	text, err := json.Marshal(r)
	if err != nil {
		d.Fatal(err)
	}
	return text
}

// by writes with an operation, by some way.
func by(ask func(d *doorTest) way) func(d *doorTest, op string, e session.Entry) error {
	return func(d *doorTest, op string, e session.Entry) error {
		if a := ask(d)(op, d.request(op, e)); a.Kind != "" {
			return errors.New(string(a.Kind))
		}
		return nil
	}
}

// post writes with an operation by HTTP.
func (d *doorTest) post(op string, e session.Entry, headers http.Header) error {
	method, path, _ := strings.Cut(home.OperationNamed(op).Route, " ")
	path = strings.NewReplacer("{session}", d.id, "{entry}", d.entry).Replace(path)
	var body map[string]any
	_ = json.Unmarshal(d.request(op, e), &body)
	delete(body, "session")
	if op == "entries.label" {
		delete(body, "entry")
	}
	text, _ := json.Marshal(body)
	r, err := http.NewRequestWithContext(d.Context(), method, d.web+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header = headers
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if answer, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%d %s", resp.StatusCode, answer)
	}
	return nil
}

func byToken(a home.Access) func(d *doorTest, op string, e session.Entry) error {
	return func(d *doorTest, op string, e session.Entry) error {
		return d.post(op, e, http.Header{"Authorization": {"Bearer " + a.String()}})
	}
}

func byPage(d *doorTest, op string, e session.Entry) error {
	r, err := http.NewRequestWithContext(d.Context(), "POST", d.web+"/web/sign-in", strings.NewReader(`{"token":"write"}`))
	if err != nil {
		return err
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Sec-Fetch-Site": {"same-origin"}}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var in struct{ Page string }
	if err := json.NewDecoder(resp.Body).Decode(&in); err != nil || in.Page == "" {
		d.Fatalf("signing in: %d, %v", resp.StatusCode, err)
	}
	cookie, _, _ := strings.Cut(resp.Header.Get("Set-Cookie"), ";")
	return d.post(op, e, http.Header{"Cookie": {cookie}, "Coppice-Page": {in.Page}, "Sec-Fetch-Site": {"same-origin"}})
}

func byStore(a home.Access) func(d *doorTest, op string, e session.Entry) error {
	return func(d *doorTest, _ string, e session.Entry) error {
		st, err := remote.Open(d.Context(), d.web+"/v1/store", &remote.Options{Token: a.String()})
		if err != nil {
			return err
		}
		defer st.Close()
		s, err := session.Open(d.Context(), st, d.id, nil)
		if err != nil {
			return err
		}
		_, err = s.AppendEntry(e)
		return errors.Join(err, s.Close())
	}
}

func byCommand(d *doorTest, op string, e session.Entry) error {
	args := []string{"--dir", d.dir}
	switch {
	case op == "entries.label":
		args = append(args, "label", d.id, e.Label.TargetID, e.Label.Label)
	case op == "entries.note":
		return errNoDoor
	case e.Message != nil:
		args = append(args, "append", d.id, "--role", "user", "a word")
	default:
		args = append(args, "append", d.id, "--entry", "-")
	}
	cmd := exec.Command("coppice", args...)
	var r struct{ Entry json.RawMessage }
	_ = json.Unmarshal(d.request(op, e), &r)
	cmd.Stdin = bytes.NewReader(r.Entry)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// byMCP calls the tools that write. There are no others.
func byMCP(d *doorTest, op string, e session.Entry) error {
	ours, theirs := sdk.NewInMemoryTransports()
	if _, err := mcp.New(d.home, nil).Connect(d.Context(), theirs, nil); err != nil {
		return err
	}
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(d.Context(), ours, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	var writers []string
	for tool, err := range c.Tools(d.Context(), nil) {
		if err != nil {
			return err
		}
		if !tool.Annotations.ReadOnlyHint {
			writers = append(writers, tool.Name)
		}
	}
	if slices.Sort(writers); !slices.Equal(writers, []string{"append_note", "set_label"}) {
		d.Errorf("the tools %q write", writers)
	}
	call := &sdk.CallToolParams{Name: "append_note", Arguments: map[string]any{"session": d.id, "text": "order it"}}
	switch op {
	case "entries.label":
		call = &sdk.CallToolParams{Name: "set_label", Arguments: map[string]any{"session": d.id, "entry": d.entry, "label": e.Label.Label}}
	case "entries.note":
	default:
		return errNoDoor
	}
	done, err := c.CallTool(d.Context(), call)
	if err == nil && done.IsError {
		err = errors.New("it did not work")
	}
	return err
}

func bySession(d *doorTest, _ string, e session.Entry) error {
	s, err := session.Open(d.Context(), d.home.Store(), d.id, nil)
	if err != nil {
		return err
	}
	_, err = s.AppendEntry(e)
	return errors.Join(err, s.Close())
}

// elsewhere makes a home with an entry more than this one, of which this one has nothing.
func (d *doorTest) elsewhere(e session.Entry) string {
	other := newDoorTest(d.T)
	d.id, d.entry = other.id, other.entry
	if e.Label != nil {
		e.Label.TargetID = other.entry
	}
	if e.Custom != nil && e.Custom.Data["session"] != nil {
		e.Custom.Data["session"] = other.id
	}
	if err := bySession(other, "", e); err != nil {
		d.Fatal(err)
	}
	return other.dir
}

func byImport(d *doorTest, _ string, e session.Entry) error {
	dir := d.elsewhere(e)
	_, err := d.home.Transfer.Import(d.Context(), home.ImportRequest{Paths: []string{filepath.Join(dir, d.id+".jsonl")}}, nil, nil)
	return err
}

func byCopy(d *doorTest, _ string, e session.Entry) error {
	_, err := home.Copy(d.Context(), home.CopyRequest{From: d.elsewhere(e), To: d.dir}, nil)
	return err
}

var doors = map[string]func(d *doorTest, op string, e session.Entry) error{
	"command line":                                byCommand,
	"library (`home`)":                            by(func(d *doorTest) way { return byLibrary(d.T, d.home) }),
	"library (`session`)":                         bySession,
	"HTTP, a token that may read":                 byToken(home.Read),
	"HTTP, a token that may write":                byToken(home.Write),
	"HTTP, a token that may do everything":        byToken(home.Admin),
	"`/v1/store`, a token that may read":          byStore(home.Read),
	"`/v1/store`, a token that may write":         byStore(home.Write),
	"`/v1/store`, a token that may do everything": byStore(home.Admin),
	"IPC": by(func(d *doorTest) way { return byRPC(d.T, d.home) }),
	"MCP": byMCP,
	"the page, signed in with a token that may write": byPage,
	"import of a session file":                        byImport,
	"copy":                                            byCopy,
}

// TestWhoWritesWhat tries each cell of the table in docs/security.md.
func TestWhoWritesWhat(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| door |")
	if !ok {
		t.Fatal("there is no table")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	heads := cellsOf("|" + rows[0])
	if len(heads) != len(doorKinds) || len(rows)-2 != len(doors) {
		t.Fatalf("the table has %d columns and %d doors", len(heads), len(rows)-2)
	}
	for _, row := range rows[2:] {
		cells := cellsOf(row)
		write := doors[cells[0]]
		if write == nil {
			t.Fatalf("nobody knows the door %q", cells[0])
		}
		for i, kind := range doorKinds {
			if heads[i] != kind.name {
				t.Fatalf("column %d is %q", i, heads[i])
			}
			t.Run(cells[0]+"/"+kind.name, func(t *testing.T) {
				t.Parallel()
				newDoorTest(t).try(cells[1+i], kind.op, kind.entry, write)
			})
		}
	}
}

func cellsOf(row string) []string {
	var cells []string
	for cell := range strings.SplitSeq(strings.Trim(row, "|"), "|") {
		cells = append(cells, strings.TrimSpace(cell))
	}
	return cells
}

// try writes an entry and looks whether it is there, and whether anything waits because of it.
func (d *doorTest) try(want, op string, entry func(*doorTest) session.Entry, write func(*doorTest, string, session.Entry) error) {
	e := entry(d)
	failed := write(d, op, e)
	if (failed == nil) != (want != "–") {
		d.Errorf("the table says %s: %v", want, failed)
	}
	there := false
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) { // another process may have written it
		s, err := session.Open(d.Context(), d.home.Store(), d.id, nil)
		if err != nil {
			d.Fatal(err)
		}
		for got, err := range s.Entries() {
			if err != nil {
				d.Fatal(err)
			}
			_, isNote := got.NoteBy()
			_, wantsNote := e.NoteBy()
			there = there || got.ID != d.entry && got.Type == e.Type && isNote == wantsNote && (e.Custom == nil || got.Custom.CustomType == e.Custom.CustomType)
		}
		if err := s.Close(); err != nil {
			d.Fatal(err)
		}
		if there || failed != nil || time.Now().After(end) {
			break
		}
	}
	if there != (want != "–") {
		d.Errorf("the table says %s; it is there: %v", want, there)
	}
	status, err := d.home.Turns.Status(d.Context(), home.SessionRequest{Session: d.id})
	if err != nil || len(status.Queued) > 0 { // it has no proof that an agent wrote it, by any door
		d.Errorf("%+v waits; %v", status, err)
	}
}
