package home

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// maxName is the maximum length of a session's name or an entry's label, in bytes. They
// appear in lists, menus and file names.
const maxName = 1000

// checkName refuses a name in a field that could not be shown in a list.
func checkName(field, name string) error {
	if len(name) <= maxName {
		return checkUTF8(field, name)
	}
	return wrong(field, "{"+field+"} has %s bytes; %s are allowed", render.Thousands(len(name)), render.Thousands(maxName))
}

// CreateRequest creates a session.
type CreateRequest struct {
	// Title is its display name. Default: none.
	Title string `json:"title,omitempty"`
	// Tags are its tags. Default: none.
	Tags []string `json:"tags,omitempty"`
	// Key is the caller's own name for it, such as "telegram:123456". A key has one session:
	// if there is one already, that is session.ErrExist. A key that already means
	// something ("last", "@1" or the id of another session) is session.ErrInvalid. Default:
	// none.
	Key string `json:"key,omitempty"`
	// CWD is the directory that it is about. Default: none.
	CWD string `json:"cwd,omitempty"`
}

// CreateResult is the session that was created.
type CreateResult struct {
	Session string `json:"session"`
}

// Create creates a session.
func (s *Sessions) Create(ctx context.Context, r CreateRequest) (*CreateResult, error) {
	return call(ctx, s.home, "sessions.create", r, s.create)
}

func (s *Sessions) create(ctx context.Context, r CreateRequest) (*CreateResult, error) {
	h := s.home
	h.beforeWriting(ctx)
	if err := cmp.Or(checkName("title", r.Title), checkUTF8("key", r.Key), checkUTF8("cwd", r.CWD)); err != nil {
		return nil, err
	}
	tags, err := cleanTags("tags", r.Tags)
	if err != nil {
		return nil, err
	}
	header := session.Header{CWD: r.CWD, Key: r.Key}
	if r.Key != "" { // so that the session can be found by its key
		if err := h.checkKey(ctx, r.Key); err != nil {
			return nil, err
		}
		if header.ID, err = session.KeyID(r.Key); err != nil {
			return nil, err
		}
	}
	made, err := session.Create(ctx, h.store, header, h.sessionOptions(ctx))
	if r.Key != "" && errors.Is(err, session.ErrExist) {
		return nil, &session.Error{
			Op: "create", Name: r.Key, Kind: session.ErrExist, Err: fmt.Errorf("session %s has this key", header.ID),
			Hint: "use the key wherever an id is accepted",
		}
	}
	if err != nil {
		return nil, err
	}
	if r.Title != "" {
		_, err = made.AppendSessionInfo(r.Title)
	}
	if err == nil && len(tags) > 0 {
		_, err = made.AppendEntry(session.Tags(tags...))
	}
	return &CreateResult{made.ID()}, errors.Join(err, made.Close())
}

// ForkRequest copies a conversation into a new session.
type ForkRequest struct {
	Session string `json:"session"`        // as a person names it: see Resolve
	Link    bool   `json:"link,omitempty"` // only the session that is named
	// At is the last entry to copy. Default: everything, with all branches.
	At string `json:"at,omitempty"`
}

// ForkResult says what was copied into which session.
type ForkResult struct {
	Session string `json:"session"`      // the new one
	From    string `json:"from"`         // the session, or the conversation, that was copied
	At      string `json:"at,omitempty"` // the last entry that was copied, if not everything was
	// Missing are the entries that the copy lacks, because they cannot be read in the original
	// either.
	Missing []MissingContent `json:"missing,omitempty"`
}

// Fork copies a conversation into a new session. The conversation itself does not
// change. If it has several sessions, the copy is still a single one.
func (s *Sessions) Fork(ctx context.Context, r ForkRequest) (*ForkResult, error) {
	return call(ctx, s.home, "sessions.fork", r, s.fork)
}

func (s *Sessions) fork(ctx context.Context, r ForkRequest) (*ForkResult, error) {
	s.home.beforeWriting(ctx)
	c, err := s.home.Conversation(ctx, OpenRequest{Session: r.Session, Link: r.Link})
	if err != nil {
		return nil, err
	}
	result, err := s.home.fork(ctx, c, r.At)
	return result, errors.Join(err, c.Close())
}

func (h *Home) fork(ctx context.Context, c *Conversation, at string) (*ForkResult, error) {
	result := &ForkResult{From: c.Handle}
	if at != "" {
		var err error
		if result.At, err = c.Resolve(at); err != nil {
			return nil, err
		}
	}
	forked, err := c.Fork(ctx, h.store, &session.ForkOptions{At: result.At, Options: h.sessionOptions(ctx)})
	if err != nil {
		return nil, err
	}
	result.Session = forked.ID()
	copied := forked
	if at == "" {
		copied = c.Session // what damage hides is not in the copy of a chain
	}
	result.Missing, err = missingOfAll(ctx, copied)
	return result, errors.Join(err, forked.Close())
}

// RenameRequest gives a conversation a display name.
type RenameRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	Name    string `json:"name"`    // "" removes the name, unless Auto is set
	// Auto lets a model choose the name.
	Auto *AutoRequest `json:"auto,omitempty"`
}

// RenameResult says what the conversation is called now.
type RenameResult struct {
	Session string `json:"session"` // the one that was written to
	Entry   string `json:"entry"`   // the entry that names it
	Name    string `json:"name"`    // with any secret in the request taken out
	Was     string `json:"was,omitempty"`
	// Auto is what a model wrote, if it chose the name.
	Auto *AutoResult `json:"auto,omitempty"`
}

// Rename gives a conversation a display name. If a model should choose it and does not, the
// name stays.
func (s *Sessions) Rename(ctx context.Context, r RenameRequest) (*RenameResult, error) {
	return call(ctx, s.home, "sessions.rename", r, s.rename)
}

func (s *Sessions) rename(ctx context.Context, r RenameRequest) (*RenameResult, error) {
	s.home.beforeWriting(ctx)
	if err := checkName("name", r.Name); err != nil {
		return nil, err
	}
	if r.Auto != nil {
		return s.home.autoRename(ctx, r)
	}
	c, err := s.home.openWith(ctx, r.Session, "")
	if err != nil {
		return nil, err
	}
	result, err := rename(c, strings.TrimSpace(r.Name))
	return result, errors.Join(forCaller("rename", c.Handle, err), c.Close())
}

// rename appends the name, and before it whatever came with it.
func rename(c *Conversation, name string, with ...session.Entry) (*RenameResult, error) {
	was, err := c.Name()
	if err != nil {
		return nil, err
	}
	info := session.Name(name)
	entry, err := remark(c.Session, func() (string, error) {
		ids, err := c.AppendAll(append(slices.Clone(with), info)...)
		if err != nil {
			return "", err
		}
		return ids[len(ids)-1], nil
	})
	if err != nil {
		return nil, err
	}
	name, err = c.Name()
	return &RenameResult{Session: c.Handle, Entry: entry, Name: name, Was: was}, unread("rename", c.Handle, err)
}

// autoRename lets a model choose a name from all of a conversation. The name goes to the last
// of its sessions, like any other.
func (h *Home) autoRename(ctx context.Context, r RenameRequest) (*RenameResult, error) {
	if r.Name != "" {
		return nil, exclude("name", "auto")
	}
	whole, err := h.openFor(ctx, OpenRequest{Session: r.Session})
	if err != nil {
		return nil, err
	}
	now, err := whole.WithContext(ctx).Context(session.ContextOptions{Shared: true})
	if err != nil {
		return nil, errors.Join(err, whole.Close())
	}
	a, err := h.author(ctx, r.Auto, writesTitle)
	if err != nil {
		return nil, errors.Join(err, whole.Close())
	}
	a.announceIn(whole.WithContext(ctx))
	made, failed := summary.Title(ctx, a.model, now.Entries, a.opts)
	if err := whole.Close(); err != nil {
		return nil, errors.Join(failed, err)
	}
	h.beforeWriting(ctx)
	opening := ctx
	if failed != nil {
		opening = context.WithoutCancel(ctx) // the cost is recorded even if the caller no longer waits
	}
	c, err := h.openWith(opening, r.Session, "")
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	if failed != nil {
		return nil, errors.Join(a.failed(ctx, "rename", whole.Handle, c.Session, made, failed), c.Close())
	}
	result, err := rename(c, made.Text, made.Log...)
	if err == nil {
		result.Auto = a.result(made)
	}
	return result, errors.Join(forCaller("rename", c.Handle, err), c.Close())
}

// PinRequest pins a conversation, or unpins it.
type PinRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	Pinned  bool   `json:"pinned"`  // false ends it
}

// PinResult says whether a conversation is pinned now.
type PinResult struct {
	Session string `json:"session"` // the session or, if there are several, the conversation
	Pinned  bool   `json:"pinned"`
	Changed bool   `json:"changed"` // false if it was like that before
}

// Pin protects a conversation from being removed, or ends that. It applies to all of
// its sessions or to none.
func (s *Sessions) Pin(ctx context.Context, r PinRequest) (*PinResult, error) {
	return call(ctx, s.home, "sessions.pin", r, s.pin)
}

func (s *Sessions) pin(ctx context.Context, r PinRequest) (*PinResult, error) {
	s.home.beforeWriting(ctx)
	name, links, err := s.home.openEach(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	result := &PinResult{Session: name, Pinned: r.Pinned}
	for _, c := range links {
		was, pinErr := c.Remarks()
		if pinErr == nil && was.Pinned != r.Pinned {
			_, pinErr = remark(c.Session, func() (string, error) { return c.AppendEntry(session.Pinned(r.Pinned)) })
			result.Changed = true
		}
		if err = pinErr; err != nil {
			break
		}
	}
	return result, errors.Join(forCaller("pin", name, err), closeAll(links))
}

// remark appends something that is only about a session (a label, a name, a tag). It does not
// depend on where the leaf is, so after a conflict it simply tries again.
func remark(s *session.Session, do func() (string, error)) (id string, err error) {
	err = retry(s, func() error {
		id, err = do()
		return err
	})
	return id, err
}

// retry calls try again after every conflict, after reading what others wrote. It is for
// appends that are right wherever the leaf is.
func retry(s *session.Session, try func() error) error {
	return session.Retry(try, func() error {
		_, err := s.Refresh()
		return err
	})
}
