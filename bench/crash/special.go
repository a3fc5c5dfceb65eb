package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/claudecode"
)

// Secrets.

// plant appends a secret: in a text, or in the output of a tool, which is a blob.
func (w *world) plant(ctx context.Context) error {
	sum := sha256.Sum256([]byte(w.text(1)))
	secret := "ghp_" + hex.EncodeToString(sum[:18])
	text, call := "the token is "+secret+", "+w.text(60), fmt.Sprintf("call-%d", w.step)
	blob := w.rand.IntN(2) == 0
	err := w.to(ctx, func(s *session.Session) error {
		if !blob {
			_, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(text)})
			return err
		}
		_, err := s.AppendAll(
			session.Message(session.RoleAssistant, session.ToolUse(call, "env", nil)),
			session.Message(session.RoleTool, session.ToolResult(call, text+w.text(3000), false)),
		)
		return err
	})
	if err == nil {
		w.state.Planted = append(w.state.Planted, secret)
	}
	return err
}

// redactAll wraps what takes out all secrets. apply returns what it says of those
// that are left.
func (w *world) redactAll(ctx context.Context, apply func() (string, error)) error {
	if len(w.state.Planted) == 0 {
		return errNothing
	}
	if err := w.begins(begin{Rewrites: true}); err != nil {
		return err
	}
	left, err := apply()
	if err != nil {
		return err
	}
	return w.noteRedacted(ctx, left)
}

// noteRedacted puts down which secrets must be nowhere any more: all, but for
// those of which it was said where they are left, in files that somebody may be
// about to use, and those that are only in blobs that nothing refers to, where a
// redaction does not look: the collection of blobs deletes these.
func (w *world) noteRedacted(ctx context.Context, said string) error {
	found, err := look(ctx, w.st)
	if err != nil {
		return err
	}
	must := func(path string) bool {
		return !strings.Contains(said, filepath.Base(path)) && !found.isOrphan(path)
	}
	var left []string
	for _, secret := range w.state.Planted {
		if paths := whereIs(w.dir, secret); len(paths) > 0 && !slices.ContainsFunc(paths, must) {
			left = append(left, secret)
		} else {
			w.state.Redacted = append(w.state.Redacted, secret)
		}
	}
	w.state.Planted = left
	return nil
}

// isOrphan reports whether a file is a blob that no line refers to.
func (s *snapshot) isOrphan(path string) bool {
	return filepath.Base(filepath.Dir(filepath.Dir(path))) == "blobs" &&
		!slices.Contains(s.refs, store.Ref("sha256:"+filepath.Base(path)))
}

func (w *world) redact(ctx context.Context) error {
	return w.redactAll(ctx, func() (string, error) {
		sweep, err := clean.Look(ctx, w.st)
		if err != nil {
			return "", err
		}
		receipt, err := sweep.Apply(ctx)
		if err != nil {
			return "", err
		}
		_, err = w.cli(ctx, nil, "index", "rebuild") // that is up to the caller
		return fmt.Sprint(receipt.Left), err
	})
}

// Exit codes of the command line.
const (
	exitUsage    = 2
	exitPartial  = 3  // a secret is left, and where
	exitNotFound = 10 // there is no store
)

func (w *world) cliRedact(ctx context.Context) error {
	return w.redactAll(ctx, func() (string, error) {
		return w.cli(ctx, []int{exitPartial}, "redact", "--all", "--apply")
	})
}

// The keyed session.

const chatKey = "chat:1"

func (w *world) beginKeyed() error {
	id, err := session.KeyID(chatKey)
	if err != nil {
		return err
	}
	return w.begins(begin{Targets: []string{id}, Appends: true, Creates: true})
}

func (w *world) keyedAdd(context.Context) error {
	if err := w.beginKeyed(); err != nil {
		return err
	}
	text := w.text(100)
	w.keyed.AddMessage(chatKey, "user", text)
	return w.saveKeyed(text)
}

// saveKeyed notes what was said when it is known to be written.
func (w *world) saveKeyed(said ...string) error {
	err := w.keyed.Save(chatKey)
	if err == nil {
		w.state.Keyed = append(w.state.Keyed, said...)
	}
	return err
}

func (w *world) keyedSave(context.Context) error {
	if err := w.beginKeyed(); err != nil {
		return err
	}
	texts := []string{w.text(100), w.text(4000)}
	for i, role := range []string{"user", "assistant"} {
		w.keyed.AddFullMessage(chatKey, keyed.Message{Role: role, Content: texts[i]})
	}
	return w.saveKeyed(texts...)
}

func (w *world) keyedSummary(context.Context) error {
	if len(w.state.Keyed) < 5 {
		return errNothing
	}
	if err := w.beginKeyed(); err != nil {
		return err
	}
	w.keyed.SetSummary(chatKey, w.text(200))
	w.keyed.TruncateHistory(chatKey, 2)
	return w.saveKeyed()
}

// checkKeyed makes sure that all that was said is there, in order.
func (w *world) checkKeyed() error {
	if len(w.state.Keyed) == 0 {
		return nil
	}
	history, err := w.keyed.History(chatKey, keyed.All)
	if err != nil {
		return err
	}
	var said []string
	for _, m := range history {
		said = append(said, m.Content)
	}
	return inOrder("the keyed session", w.state.Keyed, said)
}

// inOrder makes sure that all that was said is there, each once and in order.
func inOrder(where string, said, found []string) error {
	i := 0
	for _, text := range found {
		if i < len(said) && text == said[i] {
			i++
		} else if slices.Contains(said, text) {
			return fmt.Errorf("%s: %.40q is there twice or out of order", where, text)
		}
	}
	if i < len(said) {
		return fmt.Errorf("%s: %.40q is lost", where, said[i])
	}
	return nil
}

// The conversation, whose sessions have six messages each.

func (w *world) talk(ctx context.Context) error {
	var chain []string
	if w.state.Talk != "" {
		var err error
		if chain, err = session.Chain(ctx, w.st, w.state.Talk); err != nil {
			return err
		}
	}
	if err := w.begins(begin{Targets: append([]string{}, chain...), Appends: true, Creates: true}); err != nil {
		return err
	}
	if w.state.Talk == "" {
		s, err := w.talks.CreateSession("talk")
		if err != nil {
			return err
		}
		w.state.Talk = s.ID
	}
	for _, role := range []string{"user", "assistant"} {
		m, err := conversation.NewMessage(role, w.text(200), 0)
		if err != nil {
			return err
		}
		if _, err := w.talks.AddMessage(w.state.Talk, m); err != nil {
			return err
		}
		w.state.Talked = append(w.state.Talked, m.Text())
	}
	return w.talks.Save(w.state.Talk)
}

func (w *world) checkTalk() error {
	if w.state.Talk == "" {
		return nil
	}
	c, err := w.talks.Conversation(w.state.Talk)
	if err != nil {
		return err
	}
	var said []string
	for _, m := range c.Messages {
		said = append(said, m.Text())
	}
	return inOrder("the conversation", w.state.Talked, said)
}

// The import of a transcript that grows.

const nativeID = "5f0c0000-0000-4000-8000-000000000001"

// importedID returns the id of the session that the transcript becomes.
func importedID(ctx context.Context) (string, error) {
	c, err := transcript.Collect(ctx, claudecode.Format(), transcript.FileOf(nativeID+".jsonl", []byte(transcriptLine(0)+"\n")))
	if err != nil {
		return "", err
	}
	one := c.Conversations[0]
	return transcript.SessionID(claudecode.Name, cmp.Or(one.Family, one.ID)), nil
}

func (w *world) transcriptPath() string { return filepath.Join(w.dir, "source", nativeID+".jsonl") }

// transcriptLine is the n-th line of the transcript.
func transcriptLine(n int) string {
	parent, role := "null", "user"
	if n > 0 {
		parent = fmt.Sprintf(`"5f0c0000-0000-4000-8000-%012d"`, 1000+n-1)
	}
	content := fmt.Sprintf(`%q`, transcriptText(n))
	if n%2 == 1 {
		role = "assistant"
		content = fmt.Sprintf(`[{"type":"text","text":%q}]`, transcriptText(n))
	}
	return fmt.Sprintf(`{"type":"%s","uuid":"5f0c0000-0000-4000-8000-%012d","parentUuid":%s,"sessionId":"%s",`+
		`"timestamp":"2026-01-02T03:%02d:%02dZ","cwd":"/garden","version":"2.0.0","message":{"id":"msg_%d","role":"%s","content":%s}}`,
		role, 1000+n, parent, nativeID, n/60%60, n%60, n, role, content)
}

func transcriptText(n int) string {
	return fmt.Sprintf("line %d of the transcript %s", n, strings.Repeat("grows ", n%9))
}

// grow writes the transcript with some more lines than were imported, and returns
// how many it has. Losing it costs nothing: every run writes a new one.
func (w *world) grow(more int) (int, error) {
	n := w.state.Imported + more
	var text strings.Builder
	for i := range n {
		text.WriteString(transcriptLine(i) + "\n")
	}
	return n, os.WriteFile(w.transcriptPath(), []byte(text.String()), 0o600)
}

func (w *world) beginImport(ctx context.Context) error {
	id, err := importedID(ctx)
	if err != nil {
		return err
	}
	return w.begins(begin{Targets: []string{id}, Appends: true, Creates: true})
}

func (w *world) importMore(ctx context.Context) error {
	if err := w.beginImport(ctx); err != nil {
		return err
	}
	n, err := w.grow(1 + w.rand.IntN(4))
	if err != nil {
		return err
	}
	if err := w.importFile(ctx); err != nil {
		return err
	}
	w.state.Imported = n
	return nil
}

func (w *world) importAgain(ctx context.Context) error {
	if w.state.Imported == 0 {
		return errNothing
	}
	if err := w.beginImport(ctx); err != nil {
		return err
	}
	if _, err := w.grow(0); err != nil {
		return err
	}
	return errors.Join(w.importFile(ctx), w.importFile(ctx))
}

func (w *world) importFile(ctx context.Context) error {
	f, err := transcript.OpenFile(w.transcriptPath())
	if err != nil {
		return err
	}
	im := &transcript.Importer{
		Store:  w.st,
		Ledger: transcript.LedgerOf(w.st),
	}
	_, err = im.Import(ctx, claudecode.Format(), f)
	return err
}

func (w *world) cliImport(ctx context.Context) error {
	if err := w.beginImport(ctx); err != nil {
		return err
	}
	n, err := w.grow(w.rand.IntN(3) + 1)
	if err != nil {
		return err
	}
	if _, err = w.cli(ctx, nil, "import", w.transcriptPath()); err == nil {
		w.state.Imported = n
	}
	return err
}

// checkImport makes sure that what was imported is there, once, also when it is
// imported again. An import that was under way may have brought more.
func (w *world) checkImport(ctx context.Context) error {
	if w.state.Imported == 0 {
		return nil
	}
	if _, err := w.grow(4); err != nil { // no import adds more than that
		return err
	}
	w.state.Imported += 4
	id, err := importedID(ctx)
	if err != nil {
		return err
	}
	var want []string
	for i := range w.state.Imported {
		want = append(want, transcriptText(i))
	}
	for _, known := range []int{len(want) - 4, len(want), len(want)} {
		found, err := w.texts(ctx, id)
		if err != nil {
			return err
		}
		if err := inOrder("the import", want[:known], found); err != nil {
			return err
		}
		if err := w.importFile(ctx); err != nil {
			return err
		}
	}
	return nil
}

// texts returns the texts of a session's messages, in the order of the log.
func (w *world) texts(ctx context.Context, name string) ([]string, error) {
	s, err := session.Open(ctx, w.st, name, w.options())
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var found []string
	for e, err := range s.Entries() {
		if err != nil {
			return nil, err
		}
		if e.Message != nil {
			found = append(found, session.TextOf(e.Message.Content))
		}
	}
	return found, nil
}
