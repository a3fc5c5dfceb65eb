package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
)

// begin is what a step is about to do.
type begin struct {
	Op      string
	Targets []string // the logs that it may change; nil means all
	// What it may do to its targets, while it is under way.
	Appends  bool // add lines
	Moves    bool // move them to the trash, or out of it
	Rewrites bool // change lines, and leave the ids
	Damages  bool // leave a line that is no entry
	// What it may do beside.
	Creates bool // make logs
	Empties bool // empty the trash
}

func (b *begin) touches(name string) bool {
	return b != nil && (b.Targets == nil || slices.Contains(b.Targets, name))
}

// snapshot is what a store holds after a step.
type snapshot struct {
	Logs  map[string]content
	Trash map[string]trashed // by the removal's id
	State state

	refs []store.Ref // all blobs that lines refer to
}

// content is the lines of a log: their ids, "" where there is none, and their
// hashes.
type content struct{ IDs, Sums []string }

type trashed struct {
	Name string
	content
}

// state is what the worker knows beside what the store holds.
type state struct {
	Planted  []string // secrets that were appended and are not redacted yet
	Redacted []string // secrets that must be nowhere any more
	Keyed    []string // what was said in the keyed session
	Talk     string   // the id of the conversation
	Talked   []string // what was said in it
	Imported int      // lines of the transcript that were imported
}

var (
	blobRef = regexp.MustCompile(`"blob":"(sha256:[0-9a-f]{64})"`)
	lineID  = regexp.MustCompile(`"id":"([^"]*)"`)
)

func (c *content) add(line []byte) {
	id := ""
	if m := lineID.FindSubmatch(line); m != nil {
		id = string(m[1])
	}
	sum := sha256.Sum256(line)
	c.IDs, c.Sums = append(c.IDs, id), append(c.Sums, hex.EncodeToString(sum[:8]))
}

// look reads all logs, those in the trash too.
func look(ctx context.Context, st *file.Store) (*snapshot, error) {
	s := &snapshot{Logs: make(map[string]content), Trash: make(map[string]trashed)}
	for stat, err := range st.List(ctx) {
		if err != nil {
			return nil, err
		}
		c, err := s.read(ctx, st, stat.Name)
		if err != nil {
			return nil, err
		}
		s.Logs[stat.Name] = c
	}
	trash, err := st.Trash().List(ctx)
	if err != nil {
		return nil, err
	}
	copies, err := st.Parts().Copies(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, item := range trash {
		t := trashed{Name: item.Name}
		for _, c := range copies {
			if !strings.HasPrefix(filepath.Base(c.Place), item.ID) {
				continue
			}
			for line, err := range st.Parts().Lines(ctx, c) {
				if err != nil {
					return nil, err
				}
				s.note(line.Data)
				t.add(line.Data)
			}
		}
		s.Trash[item.ID] = t
	}
	return s, nil
}

func (s *snapshot) read(ctx context.Context, st *file.Store, name string) (c content, err error) {
	log, err := st.Open(ctx, name)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return c, err
		}
		s.note(line.Data)
		c.add(line.Data)
	}
	return c, nil
}

func (s *snapshot) note(line []byte) {
	for _, m := range blobRef.FindAllSubmatch(line, -1) {
		s.refs = append(s.refs, store.Ref(m[1]))
	}
}

// checkBlobs makes sure that the blobs that lines refer to are there.
func (s *snapshot) checkBlobs(ctx context.Context, st *file.Store) error {
	slices.Sort(s.refs)
	var wrong []error
	for _, ref := range slices.Compact(s.refs) {
		if _, err := st.Blobs().Get(ctx, ref); err != nil {
			wrong = append(wrong, err)
		}
	}
	return errors.Join(wrong...)
}

// The record is a file for each beginning and each end of a step.

func beginPath(record string, step int) string {
	return filepath.Join(record, fmt.Sprintf("%06d.begin", step))
}

func endPath(record string, step int) string {
	return filepath.Join(record, fmt.Sprintf("%06d.end", step))
}

func save(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	// Whole or not at all: the worker may be killed while it writes.
	return vfs.Replace(vfs.OS{}, path, vfs.Replacement{Perm: 0o600, NoSync: true}, vfs.Data(data))
}

// load returns nil if there is no such record.
func load[T any](path string) (*T, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v := new(T)
	return v, json.NewDecoder(bytes.NewReader(data)).Decode(v)
}

// compare returns what is wrong with what was found when a step was cut short,
// before being what there was before it. next is what there was after it, if it
// came to its end elsewhere, or nil.
func compare(before *snapshot, b *begin, next, found *snapshot) error {
	if b == nil {
		b = &begin{Op: "nothing", Targets: []string{}}
	}
	var wrong []error
	complain := func(name, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%s, during %s: %w", name, b.Op, fmt.Errorf(format, args...)))
	}
	newInTrash := func(name string) (content, bool) {
		for id, t := range found.Trash {
			if _, old := before.Trash[id]; !old && t.Name == name {
				return t.content, true
			}
		}
		return content{}, false
	}
	for name, was := range before.Logs {
		got, live := found.Logs[name]
		if !live {
			var moved bool
			if got, moved = newInTrash(name); !moved {
				complain(name, "it is lost")
				continue
			} else if !b.Moves || !b.touches(name) {
				complain(name, "it is in the trash")
			}
		}
		if err := compareLines(b, name, was, next.log(name), got); err != nil {
			complain(name, "%w", err)
		}
	}
	for id, was := range before.Trash {
		got, kept := found.Trash[id]
		live, restored := found.Logs[was.Name]
		restored = restored && b.Moves && b.touches(was.Name)
		if !kept && restored {
			got.content = live
		}
		if !kept && !restored {
			if !b.Empties {
				complain(was.Name, "it is lost from the trash")
			}
			continue
		}
		if err := compareLines(b, was.Name, was.content, nil, got.content); err != nil {
			complain(was.Name, "in the trash: %w", err)
		}
	}
	for name, got := range found.Logs {
		if _, old := before.Logs[name]; old || b.Moves && b.touches(name) {
			continue
		}
		if !b.Creates {
			complain(name, "nobody made it")
		} else if c := next.log(name); next != nil && (c == nil || !prefix(got.Sums, c.Sums)) {
			complain(name, "it is not what was about to be made")
		}
	}
	for id, t := range found.Trash {
		if _, old := before.Trash[id]; !old && (!b.Moves || !b.touches(t.Name)) {
			complain(t.Name, "nobody moved it to the trash")
		}
	}
	return errors.Join(wrong...)
}

func (s *snapshot) log(name string) *content {
	if s == nil {
		return nil
	}
	if c, ok := s.Logs[name]; ok {
		return &c
	}
	return nil
}

// compareLines holds the lines that a log has against those it had.
func compareLines(b *begin, name string, was content, next *content, got content) error {
	touched := b.touches(name)
	if !prefix(was.Sums, got.Sums) {
		if !touched || !b.Rewrites {
			return fmt.Errorf("%d lines, of which not all are the %d that were there", len(got.Sums), len(was.Sums))
		}
		if next != nil && !b.Damages && !slices.Equal(got.Sums, next.Sums) {
			return errors.New("it is neither as before nor as after")
		}
		got.IDs, was.IDs = whole(got.IDs), whole(was.IDs)
		if !prefix(was.IDs, got.IDs) {
			return fmt.Errorf("ids %q, want %q", got.IDs, was.IDs)
		}
		return nil
	}
	switch {
	case len(got.Sums) == len(was.Sums):
		return nil
	case !touched || !b.Appends && !b.Rewrites:
		return fmt.Errorf("%d lines, want %d", len(got.Sums), len(was.Sums))
	case next != nil && !b.Damages && !prefix(got.Sums, next.Sums):
		return errors.New("there are lines that nobody wrote")
	}
	return nil
}

// whole leaves out lines that are no entries.
func whole(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" })
}

func prefix(short, long []string) bool {
	return len(short) <= len(long) && slices.Equal(short, long[:len(short)])
}
