package dataset

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

const (
	sweAgent = "swe-agent"
	tauBench = "tau-bench"
)

// readBFCL reads a question: a list of turns, each a list of messages.
func readBFCL(r *reader, rec records.Record) error {
	if !rec.Get("question").First().IsArray() {
		return bad("its question is not a list of turns")
	}
	b := r.begin(rec, rec.Get("id").Name())
	for turn := range rec.Get("question").Items() {
		for m := range turn.Items() {
			b.add(b.openai(m))
		}
	}
	return b.err
}

// readChats reads what people asked public chats, with the model and facts about each
// conversation.
func readChats(r *reader, rec records.Record) error {
	if !rec.Get("conversation").IsArray() {
		return bad("it has no conversation")
	}
	native := cmp.Or(rec.Get("conversation_id").Name(), rec.Get("conversation_hash").Name())
	b := r.beginAs(rec, native, transcript.Conversation{Created: rec.Get("timestamp").Time(time.UTC)}, rec.Except(r.turns...))
	model := rec.Get("model").Text()
	for v := range rec.Get("conversation").Items() {
		m := b.openai(v)
		if m.Role == session.RoleAssistant {
			m.Model = model
		}
		b.addAt(m, v.Get("timestamp").Time(time.UTC))
	}
	return b.err
}

// readUltraChat reads a list of texts by two speakers in turn.
func readUltraChat(r *reader, rec records.Record) error {
	if !rec.Get("data").First().IsString() {
		return bad("its data is not a list of texts")
	}
	b := r.begin(rec, rec.Get("id").Name())
	for said := range rec.Get("data").Items() {
		role := session.RoleUser
		if b.n%2 == 1 {
			role = session.RoleAssistant
		}
		b.addText(role, said.Text())
	}
	return b.err
}

// readMTBench reads questions in turns, or the answers of a model to them. The questions
// to answers are in question.jsonl, in the same directory.
func readMTBench(r *reader, rec records.Record) error {
	native, model := rec.Get("question_id").Name(), rec.Get("model_id").Text()
	questions := rec.Get("turns")
	if !questions.IsArray() {
		questions = r.question(native)
		native += " " + model
	}
	b := r.beginAs(rec, native, transcript.Conversation{Created: rec.Get("tstamp").Time(time.UTC)}, rec.Except(r.turns...))
	choices := list(rec.Get("choices"))
	if len(choices) == 0 {
		b.interview(questions, nil, "")
		return b.err
	}
	best := ""
	for _, choice := range choices {
		b.last = transcript.Root
		if b.interview(questions, choice.Get("turns"), model); best == "" {
			best = b.last
		}
	}
	return b.setLeaf(best)
}

// interview adds questions, each followed by its answer. Answers may lack their questions.
func (b *builder) interview(questions, answers loose.Value, model string) {
	asked, said := list(questions), list(answers)
	for i := range max(len(asked), len(said)) {
		if i < len(asked) {
			b.addText(session.RoleUser, asked[i].Text())
		}
		if i < len(said) {
			b.add(&session.MessageEntry{Role: session.RoleAssistant, Content: text(said[i]), Model: model})
		}
	}
}

// question returns the turns of a question in the file beside the answers.
func (r *reader) question(id string) loose.Value {
	if r.questions == nil {
		r.questions = make(map[string]loose.Value)
		data, _ := r.file.Beside("question.jsonl") // it need not be there
		for line := range strings.Lines(string(data)) {
			if v := loose.Try([]byte(line)); v != nil {
				r.questions[v.Get("question_id").Name()] = v.Get("turns")
			}
		}
	}
	return r.questions[id]
}

// readTauBench reads a trial of a task. Its name does not describe the task, so it is not
// used as a title.
func readTauBench(r *reader, rec records.Record) error {
	if !rec.Get("traj").IsArray() {
		return bad("it has no traj")
	}
	b := r.begin(rec, "task "+rec.Get("task_id").Name()+" trial "+rec.Get("trial").Name())
	for m := range rec.Get("traj").Items() {
		b.turn(m)
	}
	return b.err
}

// beginRun begins a run, which is named after its task.
func (r *reader) beginRun(rec records.Record, task string, rest session.Fields) *builder {
	return r.beginAs(rec, task, transcript.Conversation{Title: task}, rest)
}

// stem returns the name of a file up to the first dot: runs are named after their tasks.
func stem(f *transcript.File) string {
	name, _, _ := strings.Cut(filepath.Base(f.Path), ".")
	return name
}

// readSWEAgent reads a run of SWE-agent (.traj) or mini-swe-agent (.traj.json): what the
// model was sent and said, if that was kept, or else the steps.
func readSWEAgent(r *reader, rec records.Record) error {
	history, steps := rec.Get("history"), list(rec.Get("trajectory"))
	if !history.IsArray() {
		history = rec.Get("messages")
	}
	if !history.IsArray() && !rec.Get("trajectory").IsArray() {
		return bad("it has neither history, nor messages, nor a trajectory")
	}
	task := rec.Get("instance_id").Text()
	if task == "" && rec.Only {
		task = stem(r.file)
	}
	b := r.beginRun(rec, task, rec.Except(r.turns...))
	if !history.IsArray() {
		b.steps(steps)
		return b.err
	}
	if len(steps) > 0 { // they repeat what the history says
		r.to.Count("step", transcript.OnlyKept, len(steps))
	}
	for m := range history.Items() {
		b.turn(named(m), "agent", "message_type", "thought", "action", "is_demo", "tool_call_ids", "extra", "tags")
	}
	return b.err
}

// named gives a tool's answer the id of the call that it answers: SWE-agent has
// a list of one.
func named(m loose.Value) loose.Value {
	id := m.Get("tool_call_ids").First()
	if m.Get("role").Text() != session.RoleTool || m.Has("tool_call_id") || id == nil {
		return m
	}
	o := residue.Object(m.Except())
	o.Set("tool_call_id", id.Raw())
	return loose.Value(o.JSON())
}

// steps adds each answer of the model and the observation that followed.
func (b *builder) steps(steps []loose.Value) {
	for _, step := range steps {
		said := cmp.Or(step.Get("response").Text(), step.Get("thought").Text()+"\n"+step.Get("action").Text())
		m := message(session.RoleAssistant, said)
		m.Extra = besides(sweAgent, step, "response", "observation")
		b.add(m)
		b.addText(session.RoleUser, step.Get("observation").Text())
	}
}
