package home

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

// ResumeRequest says which conversation to continue, and in which program.
type ResumeRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	// In is another program's format. Default: the program that it was held in.
	In string `json:"in,omitempty"`
}

// ResumeResult is how to continue.
type ResumeResult struct {
	Session string `json:"session"`
	Agent   string `json:"agent"`         // the program's format
	Dir     string `json:"dir,omitempty"` // where to run the command
	// Load is a command to run first, for a program that must import its files.
	Load []string `json:"load,omitempty"`
	// Command is nil if Agent is session.OwnAgent: then Home.Chat continues the session.
	Command []string     `json:"command"`
	Written []string     `json:"written,omitempty"` // the files that the program needed
	Losses  []ExportLoss `json:"losses,omitempty"`  // what they cannot hold
}

// Line returns what to type into a shell to continue.
func (r *ResumeResult) Line() string {
	line := plain.Command(r.Command...)
	if r.Command == nil {
		line = plain.Command("coppice", "chat", r.Session)
	}
	if len(r.Load) > 0 {
		line = plain.Command(r.Load...) + " && " + line
	}
	if r.Dir != "" {
		line = plain.Command("cd", r.Dir) + " && " + line
	}
	return line
}

// Resume finds the command that continues a conversation. If the program does not have the
// conversation (it was held or continued elsewhere, or the program has deleted it), Resume
// writes it there first. It replaces a file only if Coppice wrote it and the session has
// everything that the program has added since; the old file stays beside it as .bak. Any
// other file in that place is ErrExist.
//
// A conversation that no other program has held continues here: see Home.Chat.
func (t *Transfer) Resume(ctx context.Context, r ResumeRequest) (*ResumeResult, error) {
	if err := t.home.checkOpen("transfer.resume"); err != nil {
		return nil, err
	}
	c, err := t.home.openFor(ctx, OpenRequest{Session: r.Session})
	if err != nil {
		return nil, err
	}
	defer c.Close() // we only read
	h := c.Header()
	origin, imported := session.OriginOf(&h)
	in := r.In
	if in == "" {
		in = session.AgentOf(&h)
	}
	result := &ResumeResult{Session: c.Handle, Agent: in, Dir: h.CWD}
	if in == session.OwnAgent {
		return result, nil
	}
	format := transcript.Named(in)
	if format == nil || format.Resume == nil {
		return nil, &session.Error{
			Op: "resume", Name: c.Handle, Err: wrong("in", "%s has no command that continues a conversation", in),
			Hint: "choose one of " + strings.Join(resumable(), ", "),
		}
	}
	env := t.home.settings.machine()
	native, err := t.idInProgram(ctx, c, format, env, origin)
	if err != nil {
		return nil, err
	}
	if native != "" {
		result.Command = format.Resume(native)
		return result, nil
	}
	// The program has another state of the conversation, which stays.
	newID := imported && origin.Format == in && keeps(format, env, origin.Path)
	if err := t.writeToResume(ctx, c, format, env, newID, result); err != nil {
		return nil, err
	}
	return result, nil
}

// idInProgram returns the program's id of the conversation if the program has all of it, or "".
// The program has all of it if the last message comes from there: from the file that the
// conversation came from, or from one that we wrote.
func (t *Transfer) idInProgram(ctx context.Context, c *Conversation, format *transcript.Format, env transcript.Env, origin session.Origin) (string, error) {
	last, err := lastMessage(c.Session)
	if err != nil {
		return "", err
	}
	if last != nil {
		in, file, ok := transcript.CameFrom(c.Session, last)
		if !ok || in != format.Name {
			return "", nil
		}
		known := transcript.LedgerOf(t.home.store).Get(ctx, file)
		if known != nil && known.Exported == c.Header().ID && known.Native != "" && keeps(format, env, file) {
			return known.Native, nil
		}
		if file != origin.Path { // the program forked the conversation, and continued there
			return forkIn(ctx, format, env, file)
		}
	}
	if origin.Format == format.Name && keeps(format, env, origin.Path) {
		return origin.ID, nil
	}
	return "", nil
}

// forkIn returns the program's id of the conversation in a file of its own, or "" if the
// program no longer has the file.
func forkIn(ctx context.Context, format *transcript.Format, env transcript.Env, file string) (string, error) {
	if !keeps(format, env, file) {
		return "", nil
	}
	f, err := transcript.OpenFile(file)
	if err != nil {
		return "", err
	}
	return transcript.NativeID(ctx, format, f)
}

// lastMessage returns the message nearest to the leaf, or nil.
func lastMessage(s *session.Session) (*session.Entry, error) {
	for id := s.LeafID(); id != ""; {
		e, err := s.Entry(id)
		if err != nil {
			return nil, err
		}
		if e.Message != nil {
			return &e, nil
		}
		if e.ParentID == nil {
			break
		}
		id = *e.ParentID
	}
	return nil, nil
}

// writeToResume writes the conversation into the program's files.
func (t *Transfer) writeToResume(ctx context.Context, c *Conversation, format *transcript.Format, env transcript.Env, newID bool, result *ResumeResult) error {
	if format.Write == nil {
		return &session.Error{
			Op: "resume", Name: c.Handle, Err: wrong("in", "%s no longer has the conversation, and Coppice cannot write its files", format.Title),
			Hint: "choose one of " + strings.Join(resumable(), ", "),
		}
	}
	x := &transcript.Exporter{Env: env, Ledger: transcript.LedgerOf(t.home.store), Subagents: t.home.subagentsOf}
	done, err := x.Export(ctx, c.Session, format, transcript.Destination{NewID: newID})
	if err != nil {
		return err
	}
	result.Command, result.Written = format.Resume(done.Native), done.Paths
	if format.Load != nil {
		result.Load = format.Load(done.Paths[0])
	}
	result.Losses = countLosses(done.Losses)
	return nil
}

// resumable lists the formats that can be written and have a command to continue.
func resumable() []string {
	var names []string
	for _, f := range transcript.Formats() {
		if f.Resume != nil && f.Write != nil {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}

// keeps reports whether a program still has a file, in one of the places where it
// looks. A file that was imported from a download does not count.
func keeps(format *transcript.Format, env transcript.Env, path string) bool {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || format.Places == nil {
		return false
	}
	return slices.ContainsFunc(format.Places(env), func(p transcript.Place) bool {
		rel, err := filepath.Rel(p.Dir, path)
		return err == nil && filepath.IsLocal(rel)
	})
}
