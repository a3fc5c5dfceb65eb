package claudecode

import (
	"bytes"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

// open begins the file's own conversation, with the first line of its tree.
func (r *reader) open(l *line) error {
	if r.main != nil {
		if r.main.conv.CWD == "" {
			r.main.conv.CWD = string(l.cwd)
		}
		return nil
	}
	r.main = r.add(&thread{conv: r.conversation(l)})
	return r.begin(r.main, false)
}

// add gives a thread its number.
func (r *reader) add(t *thread) *thread {
	t.index = int32(len(r.threads))
	r.threads = append(r.threads, t)
	return t
}

// threadOf returns the conversation that a line belongs to.
func (r *reader) threadOf(l *line) *thread {
	if !l.sidechain || r.isAgentFile() {
		return r.main
	}
	if parent, ok := r.lines[keyOf(l.parent)]; ok && l.parent != nil && parent.thread != r.main.index {
		return r.threads[parent.thread]
	}
	name := string(l.agentID)
	if name == "" {
		name = string(l.uuid)
	}
	t := r.agents[name]
	if t == nil {
		t = r.add(&thread{conv: transcript.Conversation{
			ID: r.agentConversation(name), CWD: string(l.cwd), Parent: r.main.family(), Relation: session.RelationSubagent,
			Extra: factsOf(l.branch),
		}})
		r.agents[name] = t
	}
	return t
}

func (t *thread) family() string {
	if t.conv.Family != "" {
		return t.conv.Family
	}
	return t.conv.ID
}

// agentConversation returns the id of a subagent's conversation.
func (r *reader) agentConversation(agent string) string { return r.session() + "/agent-" + agent }

// session returns the id of the file's session.
func (r *reader) session() string {
	if r.main == nil {
		return ""
	}
	id, _, _ := bytes.Cut([]byte(r.main.conv.ID), []byte("/agent-"))
	return string(id)
}

// conversation returns what the first line of the tree says about the file's
// conversation.
func (r *reader) conversation(l *line) transcript.Conversation {
	c := transcript.Conversation{CWD: string(l.cwd), Extra: factsOf(l.branch)}
	if len(l.version) > 0 {
		c.Extra[factVersion] = string(l.version)
	}
	id, agent := fileID(r.file.Path)
	if !agent {
		if c.ID = id; id == "" {
			c.ID = string(l.sessionID)
		}
		if c.ID == "" {
			c.ID = transcript.HashID(Name, string(l.uuid))
		}
		// A fork may repeat its original's lines under their ids, and often does not mention
		// the original.
		c.Family = r.familyFrom(l)
		if len(l.forkOf) > 0 && !l.repeats() {
			r.forked(&c, l)
		}
		return c
	}
	parent := sessionOfAgent(r.file.Path)
	if parent == "" {
		parent = string(l.sessionID)
	}
	c.ID, c.Relation = parent+"/agent-"+id, session.RelationSubagent
	if meta, err := r.file.Beside("agent-" + id + metaSuffix); err == nil && len(meta) <= maxMeta {
		if members, err := rawjson.Map(meta); err == nil && len(members) > 0 {
			c.Extra[factAgent] = members
		}
	}
	c.Parent = parent
	if f := r.parentFile(parent); f != nil {
		if family := r.familyOf(f); family != "" {
			c.Parent = family
		}
		c.ParentCall = callOf(r.ctx, f, id)
	}
	return c
}

// factsOf returns the facts of a conversation that begins on a git branch.
func factsOf(branch []byte) map[string]any {
	facts := make(map[string]any)
	if len(branch) > 0 {
		facts[factBranch] = string(branch)
	}
	return facts
}

// branch returns the git branch on which the conversation began.
func (t *thread) branch() string {
	branch, _ := t.conv.Extra[factBranch].(string)
	return branch
}

// movedTo returns where a line was written, if that differs from where the conversation
// began, or nil.
func (t *thread) movedTo(l *line) map[string]any {
	var where map[string]any
	set := func(member string, now []byte, first string) {
		if now == nil || string(now) == first {
			return
		}
		if where == nil {
			where = make(map[string]any)
		}
		where[member] = string(now)
	}
	set(whereCWD, l.cwd, t.conv.CWD)
	set(factBranch, l.branch, t.branch())
	return where
}

// forked says which session a conversation was forked from, where the lines of the
// fork have ids of their own. The SDK makes such forks.
func (r *reader) forked(c *transcript.Conversation, l *line) {
	c.Relation, c.Parent = session.RelationFork, string(l.copyOf)
	c.Extra[factFork] = string(l.forkOf)
	if f := r.parentFile(string(l.forkOf)); f != nil {
		if family := r.familyOf(f); family != "" {
			c.Parent = family
		}
	}
}

// family names all files that begin with a line. It is "" if the line's id is too short to be
// unique.
func family(uuid []byte) string {
	if len(uuid) < 16 {
		return ""
	}
	return string(uuid)
}

// factBranch is the git branch of a conversation.
const factBranch = "git_branch"

// whereCWD is the member of transcript.MetaWhere for the working directory. That for the
// branch is factBranch.
const whereCWD = "cwd"

// factVersion is the version of the program.
const factVersion = "version"

// factAITitle is the title that the program made up.
const factAITitle = "ai_title"

// factAgent is what the file beside a subagent's says about it, such as its type.
const (
	factAgent  = "agent"
	metaSuffix = ".meta.json"
	maxMeta    = 64 << 10 // it goes into a session's header
)

// factFork is the session that a conversation was forked from.
const factFork = "forked_from"
