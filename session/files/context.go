package files

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
)

// MaxContext is the largest file that becomes a message.
const MaxContext = 4 << 20

// The members of the metadata of a message that was loaded from a file.
const (
	MetaSource = "source" // where it comes from; other messages may have this one, too
	MetaHash   = "sha256"

	metaModified = "modified"
	metaSize     = "size"
)

// category is that of reference material.
const category = "CONTEXT"

// IsText reports whether a file can be given to a model as text.
func IsText(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }

// ReadText reads a file that should become a message. Errors give its name.
func ReadText(f io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, MaxContext+1))
	switch {
	case err != nil:
	case len(data) > MaxContext:
		err = fmt.Errorf("%w: over %d bytes", session.ErrTooLarge, MaxContext)
	case !IsText(data):
		err = fmt.Errorf("%w: it is not text", session.ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("context file %.200q: %w", name, err)
	}
	return data, nil
}

// Message returns a file as a message. source is what the file is known by in the log; the
// model is shown another name if there is one.
func Message(source, shown string, data []byte, info fs.FileInfo) *session.MessageEntry {
	sum := sha256.Sum256(data)
	return &session.MessageEntry{
		Role: session.RoleSystem, Content: []session.Content{session.Text(Quote(cmp.Or(shown, source), string(data)))},
		Category: category,
		Metadata: map[string]any{
			MetaSource: source, MetaHash: hex.EncodeToString(sum[:]), metaSize: len(data),
			metaModified: info.ModTime().UTC().Format(time.RFC3339Nano),
		},
	}
}

// Quote shows a model where a text begins, where it ends and where it comes from. The text
// stays as it is, so the mark at its end must be one that is not in it.
func Quote(source, text string) string {
	tag := "context"
	for n := 2; strings.Contains(text, "</"+tag); n++ {
		tag = "context" + strconv.Itoa(n)
	}
	return fmt.Sprintf("<%s source=\"%s\">\n%s\n</%s>", tag, inAttribute.Replace(source), text, tag)
}

// inAttribute escapes what would end an attribute.
var inAttribute = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "\n", "&#10;", "\r", "&#13;")

// Source returns which file a message was loaded from, or "".
func Source(m *session.MessageEntry) string {
	from, _ := m.Metadata[MetaSource].(string)
	if _, isFile := m.Metadata[MetaHash].(string); !isFile {
		return ""
	}
	return from
}

// Read returns a file as a message, which the model sees under the name shown. The log has
// its whole path, so two files are never taken for the same one.
func Read(file, shown string) (*session.MessageEntry, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	f, err := vfs.Open(file)
	if err != nil {
		return nil, fmt.Errorf("context file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("context file: %w", err)
	}
	data, err := ReadText(f, file)
	if err != nil {
		return nil, err
	}
	return Message(filepath.ToSlash(file), shown, data, info), nil
}

// Add adds a message from Read to a session, unless the session has the same version of the
// file; it replaces an older one. It reports whether it was added.
func Add(s *session.Session, file *session.MessageEntry) (added bool, _ error) {
	old, current, err := versionsOf(s, Source(file))
	if err != nil || current == file.Metadata[MetaHash] {
		return false, err
	}
	_, err = s.AppendAll(append([]session.Entry{{Type: session.TypeMessage, Message: file}}, leaveOut(old)...)...)
	return err == nil, err
}

// Remove takes a file that Add added out of what the model is sent. It reports whether the
// session had it.
func Remove(s *session.Session, file string) (removed bool, _ error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return false, err
	}
	old, _, err := versionsOf(s, filepath.ToSlash(file))
	if err != nil || len(old) == 0 {
		return false, err
	}
	_, err = s.AppendAll(leaveOut(old)...)
	return err == nil, err
}

// versionsOf returns the entries that have a file now, and the hash of the last one.
func versionsOf(s *session.Session, source string) (ids []string, hash string, err error) {
	now, err := s.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return nil, "", err
	}
	for i := range now.Entries {
		if e := &now.Entries[i]; e.Message != nil && Source(e.Message) == source {
			ids = append(ids, e.ID)
			hash = e.Message.Metadata[MetaHash].(string)
		}
	}
	return ids, hash, nil
}

// leaveOut returns the edits that leave entries out of the context.
func leaveOut(ids []string) (edits []session.Entry) {
	for _, id := range ids {
		edits = append(edits, session.ContextEdit(id))
	}
	return edits
}
