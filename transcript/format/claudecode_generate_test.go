package format_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/transcript"
)

// generator makes a transcript as the program writes it: prompts, replies of
// several lines, tool calls and their results, and what else is in between.
type generator struct {
	rng    *rand.Rand
	buf    strings.Builder
	parent string
	n      int
}

var words = strings.Fields(`func return error package import the of and to in that it is for on with as if nil string
	int context session entry tree log append read write file line test value key name id parent leaf branch struct range map`)

func (g *generator) text(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[g.rng.IntN(len(words))])
		switch g.rng.IntN(12) {
		case 0:
			b.WriteString("\n\t")
		case 1:
			fmt.Fprintf(&b, "(%d, \"%x\")", g.rng.IntN(1000), g.rng.Uint32())
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func quote(s string) string { return string(rawjson.AppendString(nil, s)) }

// line writes a line of the tree.
func (g *generator) line(typ, rest string) string {
	g.n++
	id := transcript.HashID("line", fmt.Sprint(g.n))
	parent := "null"
	if g.parent != "" {
		parent = quote(g.parent)
	}
	fmt.Fprintf(&g.buf, `{"parentUuid":%s,"isSidechain":false,"userType":"external","cwd":"/home/u/project","sessionId":"0b3c1f7e-4d57-4a54-9be1-3f6b1b2f6f10","version":"2.1.42","gitBranch":"main","type":%q,%s,"uuid":%q,"timestamp":"2026-01-02T03:%02d:%02d.%03dZ"}`+"\n",
		parent, typ, rest, id, g.n/60%60, g.n%60, g.n%1000)
	g.parent = id
	return id
}

// turn writes a prompt and what the model does about it.
func (g *generator) turn() {
	g.line("user", `"message":{"role":"user","content":`+quote(g.text(200))+`}`)
	for range 4 {
		g.step()
	}
}

func (g *generator) step() {
	id := fmt.Sprintf("msg_%d", g.n)
	usage := fmt.Sprintf(`{"input_tokens":3,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation":{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":0},"output_tokens":%d,"service_tier":"standard"}`,
		g.rng.IntN(9000), g.rng.IntN(90000), g.rng.IntN(9000), g.rng.IntN(900))
	reply := func(block string) {
		g.line("assistant", `"message":{"model":"claude-opus-4-5","id":"`+id+`","type":"message","role":"assistant","content":[`+block+`],"stop_reason":null,"stop_sequence":null,"usage":`+usage+`},"requestId":"req_`+id+`"`)
	}
	reply(`{"type":"thinking","thinking":` + quote(g.text(600)) + `,"signature":"` + strings.Repeat("EqMCCkYIBxgC", 30) + `"}`)
	reply(`{"type":"text","text":` + quote(g.text(300)) + `}`)
	call := "toolu_" + id
	reply(`{"type":"tool_use","id":"` + call + `","name":"Edit","input":{"file_path":"/home/u/project/main.go","old_string":` + quote(g.text(400)) + `,"new_string":` + quote(g.text(500)) + `}}`)
	out := g.text(500 + g.rng.IntN(12000))
	g.line("progress", `"data":{"type":"hook_progress","hookEvent":"PostToolUse","hookName":"PostToolUse:Edit","command":"callback"},"parentToolUseID":"`+call+`","toolUseID":"`+call+`"`)
	g.line("user", `"message":{"role":"user","content":[{"tool_use_id":"`+call+`","type":"tool_result","content":`+quote(out)+`}]},"toolUseResult":{"stdout":`+quote(out)+`,"stderr":"","interrupted":false,"isImage":false}`)
}

// generate returns about so many bytes of transcript.
func generate(t testing.TB, size int) []byte {
	t.Helper()
	g := &generator{rng: rand.New(rand.NewPCG(1, 2))}
	for g.buf.Len() < size {
		g.turn()
	}
	return []byte(g.buf.String())
}
