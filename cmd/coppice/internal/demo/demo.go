// Package demo writes some made-up conversations to look at: with branches, tool
// calls, a compaction, an image, labels, a fork and a continuation.
//
// Their ids are words, and the same every time: what the documentation prints can
// be typed as it stands.
package demo

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/transcript/discover"
)

// Session is a conversation that was written.
type Session struct {
	ID    string `json:"id"`
	About string `json:"about"`
}

// stories has the log of each session.
//
//go:embed stories
var stories embed.FS

// sessions are the sessions of the demo, the oldest first.
var sessions = []Session{
	{archived, "archived: a short question"},
	{"nightly", "branches, tool calls, thinking, labels"},
	{"tokenizer", "a compaction and an edit of the context"},
	{"table", "a fork of the one before"},
	{"kyoto", "Japanese, and an image"},
	{"ledger", "reached its limit and continues in the next"},
	{"ledger-12", "the continuation"},
	{"release", "from today, pinned, without a name"},
}

// archived is the session that goes to the archive, if the store has one.
const archived = "licence"

// told is the present of the stories: their times are moved by as much as has passed since.
var told = time.Date(2025, 3, 14, 15, 9, 0, 0, time.UTC)

// Write imports the conversations into a home, dated over the days before now,
// and returns them, the oldest first. Unless force is true it returns
// session.ErrExist for a home that has sessions: made-up ones must not get among
// real ones by accident. With force it still does so if one of them has the id of one of the demo,
// so it never adds a second demo. If it fails, it returns what it has written until then.
func Write(ctx context.Context, h *home.Home, now time.Time, force bool) ([]Session, error) {
	if err := refuseUsed(ctx, h.Store(), force); err != nil {
		return nil, err
	}
	for i, s := range sessions {
		if err := s.write(ctx, h, now.Truncate(time.Minute).Sub(told)); err != nil {
			return slices.DeleteFunc(slices.Clone(sessions[:i+1]), func(s Session) bool {
				_, missing := h.Store().Stat(context.WithoutCancel(ctx), s.ID)
				return missing != nil
			}), err
		}
	}
	return slices.Clone(sessions), nil
}

func refuseUsed(ctx context.Context, st store.Store, force bool) error {
	ours := make(map[string]bool, len(sessions))
	for _, s := range sessions {
		ours[s.ID] = true
	}
	for stat, err := range st.List(ctx) {
		if err != nil {
			return err
		}
		if force && !ours[stat.Name] {
			continue
		}
		return &session.Error{
			Op: "write the demo to", Path: st.Where(), Kind: session.ErrExist,
			Err: fmt.Errorf("there are sessions already, such as %s", stat.Name),
		}
	}
	return nil
}

// write imports a session whose times are moved, and dates its file as if the last
// entry had just been written to it.
func (s Session) write(ctx context.Context, h *home.Home, by time.Duration) error {
	log, err := stories.ReadFile("stories/" + s.ID + ".jsonl")
	if err != nil {
		return err
	}
	log, last, err := moved(log, by)
	if err != nil {
		return err
	}
	stop := func(e home.ImportEvent) error {
		if e.Error == nil {
			return nil
		}
		return e.Error
	}
	request := home.ImportRequest{Paths: []string{discover.Stdin}, Format: home.FormatCoppice}
	if _, err := h.Transfer.Import(ctx, request, bytes.NewReader(log), stop); err != nil {
		return err
	}
	if archiver, ok := store.As[store.Archiver](h.Store()); ok && s.ID == archived {
		return archiver.Archive(ctx, s.ID)
	}
	if dir, ok := store.As[store.Directory](h.Store()); ok {
		return os.Chtimes(dir.Path(s.ID), last, last)
	}
	return nil
}

// member is the time of a line, as a log has it.
const member = `"timestamp":"2006-01-02T15:04:05.000Z"`

// members matches these, and nothing in a text, because quotes are escaped there.
var members = regexp.MustCompile(`"timestamp":"[^"]+"`)

// moved moves all times of a log, and returns the last one.
func moved(log []byte, by time.Duration) (out []byte, last time.Time, err error) {
	out = members.ReplaceAllFunc(log, func(was []byte) []byte {
		at, bad := time.Parse(member, string(was))
		err = errors.Join(err, bad)
		last = at.Add(by)
		return last.AppendFormat(nil, member)
	})
	return out, last, err
}
