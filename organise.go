package coppice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
)

// CreateRequest begins a session.
type CreateRequest struct {
	// Title is its display name. Default: none.
	Title string `json:"title,omitempty"`
	// Tags are its tags. Default: none.
	Tags []string `json:"tags,omitempty"`
	// Key is the caller's own name for it, such as "telegram:123456". A key has one
	// session: Create returns session.ErrExist if there is one. Default: none.
	Key string `json:"key,omitempty"`
	// CWD is the directory that it is about. Default: none.
	CWD string `json:"cwd,omitempty"`
}

// CreateResult is the session that was begun.
type CreateResult struct {
	Session string `json:"session"`
}

// Create begins a session.
func (s *Sessions) Create(ctx context.Context, r CreateRequest) (*CreateResult, error) {
	h := s.home
	h.beforeWriting(ctx)
	if err := checkUTF8("create", "", append([]string{r.Title, r.Key, r.CWD}, r.Tags...)...); err != nil {
		return nil, err
	}
	tags, err := cleanTags(r.Tags)
	if err != nil {
		return nil, err
	}
	header := session.Header{CWD: r.CWD, Key: r.Key}
	if r.Key != "" { // so that whoever knows the key finds the session
		if header.ID, err = keyed.SessionID(r.Key); err != nil {
			return nil, err
		}
	}
	made, err := session.Create(ctx, h.store, header, h.sessionOptions())
	if r.Key != "" && errors.Is(err, session.ErrExist) {
		return nil, &session.Error{
			Op: "create", Name: r.Key, Kind: session.ErrExist, Err: fmt.Errorf("session %s has this key", header.ID),
			Hint: "a key has one session: use the key where an id goes",
		}
	}
	if err != nil {
		return nil, err
	}
	if r.Title != "" {
		_, err = made.AppendSessionInfo(r.Title)
	}
	if err == nil && len(tags) > 0 {
		_, err = made.SetTags(tags...)
	}
	return &CreateResult{made.ID()}, errors.Join(err, made.Close())
}

// ForkRequest copies a conversation into a new session.
type ForkRequest struct {
	Session string `json:"session"`        // as a person names it: see Resolve
	Link    bool   `json:"link,omitempty"` // only the session that is named
	// At is the entry up to which to copy. Default: all of it, with all branches.
	At string `json:"at,omitempty"`
}

// ForkResult says what was copied into which session.
type ForkResult struct {
	Session string `json:"session"`      // the new one
	From    string `json:"from"`         // the session, or the conversation, that was copied
	At      string `json:"at,omitempty"` // the entry up to which it was copied, if not all of it was
}

// Fork copies a conversation into a new session. The conversation itself does not
// change. One that goes on in several sessions becomes a single session.
func (s *Sessions) Fork(ctx context.Context, r ForkRequest) (*ForkResult, error) {
	s.home.beforeWriting(ctx)
	c, err := s.Open(ctx, OpenRequest{Session: r.Session, Link: r.Link})
	if err != nil {
		return nil, err
	}
	result, err := s.home.fork(ctx, c, r.At)
	return result, errors.Join(err, c.Close())
}

func (h *Home) fork(ctx context.Context, c *Conversation, at string) (*ForkResult, error) {
	result := &ForkResult{From: c.Name}
	var forked *session.Session
	var err error
	if at == "" {
		forked, err = c.Fork(ctx, h.store, h.sessionOptions())
	} else {
		if result.At, err = c.Resolve(at); err != nil {
			return nil, err
		}
		forked, err = c.WithContext(ctx).ForkAt(result.At)
	}
	if err != nil {
		return nil, err
	}
	result.Session = forked.ID()
	return result, forked.Close()
}

// RenameRequest gives a conversation a display name.
type RenameRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	Name    string `json:"name"`    // "" takes the name away
}

// RenameResult says what the conversation is called now.
type RenameResult struct {
	Session string `json:"session"` // the one that was written to
	Entry   string `json:"entry"`   // the entry that names it
	Name    string `json:"name"`    // without a secret that the request may have had
	Was     string `json:"was,omitempty"`
}

// Rename gives a conversation a display name.
func (s *Sessions) Rename(ctx context.Context, r RenameRequest) (*RenameResult, error) {
	s.home.beforeWriting(ctx)
	if err := checkUTF8("rename", r.Session, r.Name); err != nil {
		return nil, err
	}
	c, err := s.home.openWith(ctx, r.Session, "")
	if err != nil {
		return nil, err
	}
	result, err := rename(c, strings.TrimSpace(r.Name))
	return result, errors.Join(plainly("rename", c.Name, err), c.Close())
}

func rename(c *Conversation, name string) (*RenameResult, error) {
	was, err := c.Session.Name()
	if err != nil {
		return nil, err
	}
	entry, err := remark(c.Session, func() (string, error) { return c.AppendSessionInfo(name) })
	if err != nil {
		return nil, err
	}
	name, err = c.Session.Name()
	return &RenameResult{Session: c.Name, Entry: entry, Name: name, Was: was}, err
}

// TagRequest changes the tags of a conversation, or only asks for them.
type TagRequest struct {
	Session string   `json:"session"` // as a person names it: see Resolve
	Add     []string `json:"add,omitempty"`
	Remove  []string `json:"remove,omitempty"` // wins over Add
}

// TagResult has the tags of a conversation.
type TagResult struct {
	Session string   `json:"session"` // the session or, of several, the conversation
	Tags    []string `json:"tags"`    // sorted
	// Entry is the last entry that was written for it; "" if the tags were like
	// that already.
	Entry string `json:"entry,omitempty"`
}

// Tag adds tags to those of a conversation and takes others away. What is added
// goes to its last session; what is taken away is taken from all that have it.
// Without changes it only returns the tags, and writes nothing.
func (s *Sessions) Tag(ctx context.Context, r TagRequest) (*TagResult, error) {
	add, err := cleanTags(r.Add)
	if err != nil {
		return nil, err
	}
	remove, err := cleanTags(r.Remove)
	if err != nil {
		return nil, err
	}
	if len(add)+len(remove) > 0 {
		s.home.beforeWriting(ctx)
	}
	name, links, err := s.home.openEach(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	add = slices.DeleteFunc(add, func(tag string) bool { return slices.Contains(remove, tag) })
	result := &TagResult{Session: name}
	result.Entry, err = changeTags(links, add, remove)
	if err == nil {
		result.Tags, err = tagsOf(links)
	}
	return result, errors.Join(plainly("tag", name, err), closeAll(links))
}

// cleanTags checks tags as a person gives them.
func cleanTags(tags []string) ([]string, error) {
	if err := checkUTF8("tag", "", tags...); err != nil {
		return nil, err
	}
	clean := make([]string, len(tags))
	for i, tag := range tags {
		if clean[i] = strings.TrimSpace(tag); clean[i] == "" {
			return nil, invalid("a tag is empty")
		}
	}
	return clean, nil
}

// tagsOf returns the tags of a conversation: those of all its sessions.
func tagsOf(links []*Conversation) ([]string, error) {
	var all session.TagSet
	for _, c := range links {
		tags, err := c.Tags()
		if err != nil {
			return nil, err
		}
		all.Add(tags...)
	}
	return append([]string{}, all.Sorted()...), nil // in JSON an empty list is a list
}

// changeTags changes the tags of a conversation and returns the id of the last
// entry that does so, or "" if they are like that already.
func changeTags(links []*Conversation, add, remove []string) (entry string, err error) {
	if len(add)+len(remove) == 0 {
		return "", nil
	}
	all, err := tagsOf(links)
	if err != nil {
		return "", err
	}
	add = slices.DeleteFunc(slices.Clone(add), func(tag string) bool { return slices.Contains(all, tag) })
	for i, c := range links {
		tags, err := c.Tags()
		if err != nil {
			return "", err
		}
		less := slices.DeleteFunc(slices.Clone(remove), func(tag string) bool { return !slices.Contains(tags, tag) })
		more := add
		if i < len(links)-1 {
			more = nil
		}
		if len(more)+len(less) == 0 {
			continue
		}
		if entry, err = remark(c.Session, func() (string, error) { return c.ChangeTags(more, less) }); err != nil {
			return "", err
		}
	}
	return entry, nil
}

// SuggestTagsRequest asks for words that would make good tags.
type SuggestTagsRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
}

// SuggestTagsResult has words that would make good tags.
type SuggestTagsResult struct {
	Session   string   `json:"session"`
	Suggested []string `json:"suggested"` // the best first
}

const maxSuggested = 8

// SuggestTags returns words that set a conversation apart from others and that are
// not among its tags: those first that are tags of others already.
func (s *Sessions) SuggestTags(ctx context.Context, r SuggestTagsRequest) (*SuggestTagsResult, error) {
	h := s.home
	found, err := h.indexed(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	ix, err := h.index(ctx)
	if err != nil {
		return nil, err
	}
	tags, err := ix.Tags(ctx)
	if err != nil {
		return nil, err
	}
	topics, err := ix.Topics(ctx, index.StatsOptions{Session: found.ID}, 4*maxSuggested)
	if err != nil {
		return nil, err
	}
	isTag := make(map[string]bool)
	for _, tag := range tags {
		isTag[strings.ToLower(tag.Name)] = true
	}
	var known, unknown []string
	for _, topic := range topics {
		switch {
		case slices.Contains(found.Tags, topic.Word):
		case isTag[topic.Word]:
			known = append(known, topic.Word)
		default:
			unknown = append(unknown, topic.Word)
		}
	}
	words := append(append([]string{}, known...), unknown...)
	return &SuggestTagsResult{found.ID, words[:min(len(words), maxSuggested)]}, nil
}

// PinRequest pins a conversation, or unpins it.
type PinRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	Pinned  bool   `json:"pinned"`
}

// PinResult says whether a conversation is pinned now.
type PinResult struct {
	Session string `json:"session"` // the session or, of several, the conversation
	Pinned  bool   `json:"pinned"`
	Changed bool   `json:"changed"` // it was not so before
}

// Pin keeps a conversation from being removed, or lets it be removed again. All of
// its sessions are kept, or none.
func (s *Sessions) Pin(ctx context.Context, r PinRequest) (*PinResult, error) {
	s.home.beforeWriting(ctx)
	name, links, err := s.home.openEach(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	result := &PinResult{Session: name, Pinned: r.Pinned}
	for _, c := range links {
		was, pinErr := c.Pinned()
		if pinErr == nil && was != r.Pinned {
			_, pinErr = remark(c.Session, func() (string, error) { return c.SetPinned(r.Pinned) })
			result.Changed = true
		}
		if err = pinErr; err != nil {
			break
		}
	}
	return result, errors.Join(plainly("pin", name, err), closeAll(links))
}

// remark appends what only says something about a session (a label, a name, a
// tag). That does not depend on where the leaf is, so it is simply tried
// again if another writer was first.
func remark(s *session.Session, do func() (string, error)) (id string, err error) {
	err = s.Retry(func() error {
		id, err = do()
		return err
	})
	return id, err
}
