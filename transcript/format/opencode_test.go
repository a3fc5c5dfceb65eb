package format_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/opencode"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// The same session stands in the three forms below.
var (
	info = `{"id":"ses_a","slug":"quiet-fox","projectID":"p","directory":"/p","title":"Health route","version":"1.0","time":{"created":1767225600000,"updated":1767225609000},"revert":{"messageID":"msg_7"}}`

	messages = [][2]string{
		{"msg_1", `{"role":"user","time":{"created":1767225600000},"agent":"build"}`},
		{"msg_2", `{"role":"assistant","time":{"created":1767225601000},"parentID":"msg_1","modelID":"claude-sonnet-4-5","providerID":"anthropic","cost":0.0123,"tokens":{"input":900,"output":210,"reasoning":10,"cache":{"read":4000,"write":300}},"finish":"stop"}`},
		{"msg_3", `{"role":"user","time":{"created":1767225602000}}`},
		{"msg_4", `{"role":"assistant","time":{"created":1767225603000},"summary":true,"model":{"providerID":"openai","modelID":"gpt-5"}}`},
		{"msg_5", `{"role":"user","time":{"created":1767225604000}}`},
		{"msg_6", `{"role":"assistant","time":{"created":1767225605000},"model":{"providerID":"openai","modelID":"gpt-5"},"tokens":{"input":5,"output":1},"error":{"name":"MessageAbortedError"}}`},
		{"msg_7", `{"role":"user","time":{"created":1767225606000}}`},
	}

	parts = [][3]string{
		{"prt_01", "msg_1", `{"type":"text","text":"Add a /health route"}`},
		{"prt_02", "msg_1", `{"type":"text","text":"Called the Read tool","synthetic":true}`},
		{"prt_03", "msg_1", `{"type":"file","mime":"image/png","filename":"a.png","url":"data:image/png;base64,AA=="}`},
		{"prt_04", "msg_1", `{"type":"file","mime":"text/plain","filename":"a.log","url":"file:///p/a.log"}`},
		{"prt_05", "msg_2", `{"type":"step-start","snapshot":"abc"}`},
		{"prt_06", "msg_2", `{"type":"reasoning","text":"Find the router.","metadata":{"anthropic":{"signature":"s"}}}`},
		{"prt_07", "msg_2", `{"type":"tool","callID":"t1","tool":"bash","state":{"status":"completed","input":{"command":"false"},"output":"no","title":"try","metadata":{"exit":1},"attachments":[{"type":"file","mime":"image/png","url":"data:image/png;base64,AA=="}]}}`},
		{"prt_08", "msg_2", `{"type":"tool","callID":"t2","tool":"task","state":{"status":"completed","input":{"prompt":"find"},"output":"router.go","metadata":{"sessionId":"ses_b"}}}`},
		{"prt_09", "msg_2", `{"type":"step-finish","reason":"tool-calls","cost":0.01,"tokens":{"input":800,"output":200,"reasoning":10,"cache":{"read":4000,"write":300}}}`},
		{"prt_10", "msg_2", `{"type":"tool","callID":"t3","tool":"edit","state":{"status":"error","input":{},"error":"no such file"}}`},
		{"prt_11", "msg_2", `{"type":"tool","callID":"t4","tool":"edit","state":{"status":"running","input":{"x":1}}}`},
		{"prt_12", "msg_2", `{"type":"text","text":"Added the route."}`},
		{"prt_13", "msg_2", `{"type":"patch","hash":"def","files":["router.go"]}`},
		{"prt_13b", "msg_2", `{"type":"step-finish","reason":"stop","cost":0.0023,"tokens":{"input":100,"output":10,"reasoning":0,"cache":{"read":0,"write":0}}}`},
		{"prt_14", "msg_3", `{"type":"compaction","auto":true,"tail_start_id":"msg_2"}`},
		{"prt_15", "msg_4", `{"type":"text","text":"A route was added."}`},
		{"prt_16", "msg_5", `{"type":"subtask","prompt":"look again","agent":"explore"}`},
		{"prt_17", "msg_6", `{"type":"text","text":"I lo"}`},
		{"prt_18", "msg_6", `{"type":"hologram","x":1}`},
		{"prt_19", "msg_7", `{"type":"text","text":"taken back"}`},
	}
)

// withMember puts a member before the others of an object.
func withMember(object, name, value string) string {
	return `{"` + name + `":"` + value + `",` + strings.TrimPrefix(object, "{")
}

func opencodeTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, m := range messages {
		transcripttest.WriteFile(t, filepath.Join(dir, "storage/message/ses_a", m[0]+".json"), withMember(m[1], "id", m[0]))
	}
	for _, p := range parts {
		transcripttest.WriteFile(t, filepath.Join(dir, "storage/part", p[1], p[0]+".json"), withMember(p[2], "id", p[0]))
	}
	path := filepath.Join(dir, "storage/session/p/ses_a.json")
	transcripttest.WriteFile(t, path, info)
	return path
}

func opencodeDatabase(t *testing.T) string {
	t.Helper()
	statements := []string{
		`CREATE TABLE session(id text PRIMARY KEY, project_id text, parent_id text, slug text, directory text, title text, version text, revert text, agent text, time_created integer, time_archived integer)`,
		`CREATE TABLE message(id text PRIMARY KEY, session_id text, time_created integer, data text)`,
		`CREATE TABLE part(id text PRIMARY KEY, message_id text, session_id text, data text)`,
		`CREATE TABLE session_message(id text PRIMARY KEY, session_id text, type text, seq integer, data text)`,
		`INSERT INTO session VALUES('ses_a', 'p', NULL, 'quiet-fox', '/p', 'Health route', '1.0', '{"messageID":"msg_7"}', NULL, 1767225600000, NULL)`,
		`INSERT INTO session VALUES('ses_b', 'p', 'ses_a', 'quick-owl', '/p', 'Find routes', '1.0', NULL, 'explore', 1767225602000, 1767225609000)`,
		`INSERT INTO session_message VALUES('x', 'ses_b', 'user', 1, '{}')`,
	}
	for i, m := range messages {
		statements = append(statements, `INSERT INTO message VALUES('`+m[0]+`', 'ses_a', `+loose.Value(messages[i][1]).Get("time", "created").Name()+`, '`+m[1]+`')`)
	}
	for _, p := range parts {
		statements = append(statements, `INSERT INTO part VALUES('`+p[0]+`', '`+p[1]+`', 'ses_a', '`+p[2]+`')`)
	}
	return transcripttest.Database(t, "opencode.db", statements...)
}

func export() *transcript.File {
	var list []string
	for _, m := range messages {
		var own []string
		for _, p := range parts {
			if p[1] == m[0] {
				own = append(own, withMember(p[2], "id", p[0]))
			}
		}
		list = append(list, `{"info":`+withMember(m[1], "id", m[0])+`,"parts":[`+strings.Join(own, ",")+`]}`)
	}
	return transcript.FileOf("export.json", []byte(`{"info":`+info+`,"messages":[`+strings.Join(list, ",")+`]}`))
}

// TestOpenCodeForms: the three forms of a session are read alike.
func TestOpenCodeForms(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*transcript.File{
		"tree": transcripttest.Open(t, opencodeTree(t)), "database": transcripttest.Open(t, opencodeDatabase(t)), "export": export(),
	} {
		t.Run(name, func(t *testing.T) {
			got := transcripttest.Collect(t, opencode.Format(), f)
			if name == "database" {
				child := got.Conversations[1]
				if child.Parent != "ses_a" || child.Relation != session.RelationSubagent || child.Extra["agent"] != "explore" {
					t.Errorf("the subagent is %+v", child.Conversation)
				}
				if got.Counts[transcript.Became{What: "row of session_message", Became: transcript.OnlyKept}] != 1 {
					t.Error("rows of the newer table are not kept")
				}
				got.Conversations = got.Conversations[:1]
				delete(got.Counts, transcript.Became{What: "row of session_message", Became: transcript.OnlyKept})
			}
			transcripttest.Golden(t, "testdata/opencode/session.golden", transcripttest.Outline(got))
		})
	}
}

// TestOpenCodeOlderTrees: two older layouts, and a torn file.
func TestOpenCodeOlderTrees(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "project/x/storage/session/info/ses_1.json")
	transcripttest.WriteFile(t, path, `{"id":"ses_1","title":"Old","time":{"created":1}}`)
	transcripttest.WriteFile(t, filepath.Join(dir, "project/x/storage/session/message/ses_1/msg_1.json"), `{"id":"msg_1","role":"user","time":{"created":1}}`)
	transcripttest.WriteFile(t, filepath.Join(dir, "project/x/storage/session/part/ses_1/msg_1/prt_1.json"), `{"type":"text","text":"hello"}`)
	transcripttest.WriteFile(t, filepath.Join(dir, "project/x/storage/session/part/ses_1/msg_1/prt_2.json"), `{"type":"te`)
	got := transcripttest.Collect(t, opencode.Format(), transcripttest.Open(t, path))
	if len(got.Conversations[0].Records) != 1 || len(got.Problems) != 1 {
		t.Errorf("got\n%s", transcripttest.Outline(got))
	}
	path = filepath.Join(dir, "storage/session/p/ses_2.json")
	transcripttest.WriteFile(t, path, `{"id":"ses_2","title":"Older","time":{"created":1}}`)
	transcripttest.WriteFile(t, filepath.Join(dir, "storage/message/ses_2/msg_2.json"), `{"id":"msg_2","role":"user","time":{"created":1}}`)
	transcripttest.WriteFile(t, filepath.Join(dir, "storage/part/prt_1.json"), `{"messageID":"msg_2","type":"text","text":"hello"}`)
	if got := transcripttest.Collect(t, opencode.Format(), transcripttest.Open(t, path)); len(got.Conversations[0].Records) != 1 {
		t.Errorf("parts in one directory are not found:\n%s", transcripttest.Outline(got))
	}
}

// TestOpenCodeTextFiles: opencode sends what is in a file of plain text, and not the file. Where
// it lies stays for opencode alone.
func TestOpenCodeTextFiles(t *testing.T) {
	t.Parallel()
	const messages = `{"info":{"id":"ses_1","title":"T","directory":"/p","time":{"created":1767225600000}},"messages":[` +
		`{"info":{"id":"msg_1","role":"user","time":{"created":1767225600000}},"parts":[` +
		`{"id":"prt_1","type":"text","text":"look"},` +
		`{"id":"prt_2","type":"text","synthetic":true,"text":"hello\n"},` +
		`{"id":"prt_3","type":"file","mime":"text/plain","filename":"a.txt","url":"data:text/plain;base64,aGVsbG8K"},` +
		`{"id":"prt_4","type":"file","mime":"text/plain","filename":"b.txt","url":"file:///p/b.txt"}]}]}`
	got := transcripttest.Collect(t, opencode.Format(), transcript.FileOf("x.json", []byte(messages)))
	var said []string
	for _, r := range got.Conversations[0].Records {
		sent, _ := session.WithoutLocal(r.Entry.Message.Content)
		for _, c := range sent {
			if c.Text == nil {
				t.Errorf("something but text is sent: %s", c.Type)
				continue
			}
			said = append(said, c.Text.Content)
		}
	}
	if want := []string{"look", "hello\n"}; !slices.Equal(said, want) {
		t.Errorf("sent %q, want %q", said, want)
	}
	script, err := transcripttest.Script(t.Context(), got.Conversations[0])
	if err != nil {
		t.Fatal(err)
	}
	script.NativeID = "ses_1"
	out, err := (&transcript.Exporter{}).Prepare(t.Context(), opencode.Format(), script, nil)
	if err != nil || !strings.Contains(string(out.Files[0].Data), `file:///p/b.txt`) {
		t.Errorf("opencode does not get its own file back: %v", err)
	}
}

// TestOpenCodePieces: the files of a tree that are no sessions are nobody else's either.
func TestOpenCodePieces(t *testing.T) {
	t.Parallel()
	root := filepath.Dir(filepath.Dir(filepath.Dir(opencodeTree(t))))
	for _, name := range []string{"message/ses_a/msg_1.json", "part/msg_2/prt_06.json"} {
		path := filepath.Join(root, name)
		transcripttest.WriteFile(t, path, `{"id":"x","sessionID":"ses_a","type":"reasoning"}`)
		if got := transcripttest.Collect(t, opencode.Format(), transcripttest.Open(t, path)); len(got.Conversations) != 0 || len(got.Counts) != 1 {
			t.Errorf("%s is read as\n%s", name, transcripttest.Outline(got))
		}
	}
}

func TestOpenCodeBadFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{`{"info":{`: session.ErrCorrupt, `{"id":"ses_1","title":"","time":{}}`: session.ErrInvalid} {
		if _, err := transcript.Collect(t.Context(), opencode.Format(), transcript.FileOf("x.json", []byte(text))); !errors.Is(err, want) {
			t.Errorf("%s gives %v, want %v", text, err, want)
		}
	}
	if opencode.Format().Detect(transcript.FileOf("x.json", []byte(`{"messages":[]}`))) {
		t.Error("any list of messages is taken for opencode's")
	}
}

func TestOpenCodePlaces(t *testing.T) {
	t.Parallel()
	env := transcript.Env{Home: "/home/u", Getenv: func(string) string { return "" }, GOOS: "linux"}
	places := opencode.Format().Places(env)
	if len(places) != 3 || !places[0].Match("opencode-dev.db") || places[0].Match("auth.json") || !places[1].Match("p/ses_1.json") ||
		!places[2].Match("x/storage/session/info/ses_1.json") || places[2].Match("x/storage/session/message/s/m.json") {
		t.Errorf("places are %v", places)
	}
	env.Getenv = func(string) string { return filepath.Join(t.TempDir(), "my.db") }
	if got := opencode.Format().Places(env); len(got) != 4 || got[3].Match != nil {
		t.Errorf("the database of the environment is missing: %v", got)
	}
}

func TestOpenCodeSamples(t *testing.T) {
	t.Parallel()
	for pattern, calls := range map[string]int{"opencode-json/agent-sessions/*/session/*/*.json": 1, "opencode-sqlite/*.db": 2} {
		for _, path := range transcripttest.Samples(t, pattern) {
			got := transcripttest.Collect(t, opencode.Format(), transcripttest.Open(t, path))
			if messages, have := transcripttest.Totals(got); have != calls || messages < 3 {
				t.Errorf("%s: %d messages, %d calls, want %d\n%s", path, messages, have, calls, transcripttest.Outline(got))
			}
		}
	}
}

func FuzzOpenCodeRead(f *testing.F) {
	data, err := export().ReadAll()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = transcript.Collect(t.Context(), opencode.Format(), transcript.FileOf("x.json", data))
	})
}
