package index

import (
	"context"
	"path"
	"strings"
	"unicode"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/files"
)

// The table files has each file that a session's tools touched, once: by its whole path, and by
// its last element, which is what people remember.

// maxPath is the length of a path in bytes above which it is none.
const maxPath = maxKey

// touchedBy returns the files that a call reads or changes, as it names them.
func touchedBy(c *session.ToolUseContent) []string {
	read, changed := files.Touched(c)
	return append(read, changed...)
}

// addFiles enters the files that an entry's calls touched.
func (w *writer) addFiles(s *state, rec *record) error {
	for _, named := range rec.files {
		file := fileIn(s.cwd, named)
		if len(file) > maxPath || s.files[file] {
			continue
		}
		if s.files == nil {
			s.files = make(map[string]bool)
		}
		s.files[file] = true
		if err := w.add(w.fileRows, fileKey(file), file, s.id); err != nil {
			return err
		}
	}
	return nil
}

// fileIn returns the path of a file that a call names, relative to the directory of its
// session, on whatever system that was.
func fileIn(cwd, file string) string {
	isDrive := len(file) > 1 && file[1] == ':' && unicode.IsLetter(rune(file[0]))
	if cwd != "" && !isDrive && !strings.ContainsAny(file[:min(1, len(file))], `/\~`) {
		separator := "/"
		if strings.Contains(cwd, `\`) {
			separator = `\`
		}
		file = strings.TrimRight(cwd, `/\`) + separator + file
	}
	if strings.Contains(file, `\`) {
		return file
	}
	return path.Clean(file)
}

// fileKey returns the last element of a path, as it is looked up.
func fileKey(file string) string { return strings.ToLower(ProjectOf(file)) }

// touched is a query for the sessions, and the chains of sessions, in which a tool touched a
// file: one with this path, or whose path ends so.
func touched(file string) (string, []any) {
	file = projectName(file)
	cond, args := "f.name = ?", []any{fileKey(file)}
	if strings.ContainsAny(file, `/\`) {
		ends, more := isCalledIn("f.path", file)
		cond, args = cond+" AND "+ends, append(args, more...)
	}
	return "SELECT f.session FROM files f WHERE " + cond +
		" UNION SELECT l.chain FROM files f CROSS JOIN sessions l ON l.id = f.session WHERE l.chain <> 0 AND " + cond, append(args, args...)
}

// maxTouched is the number of sessions up to which those that touched a file are looked up and
// sorted. For more, all sessions are read in the wanted order until a page is full.
const maxTouched = 200

// isRarelyTouched reports whether few sessions touched a file: see maxTouched.
func isRarelyTouched(ctx context.Context, db room.Tables, file string) (rarely bool, err error) {
	query, args := touched(file)
	err = db.QueryRowContext(ctx, `SELECT count(*) <= ? FROM (`+query+` LIMIT ?) few`, append(append([]any{maxTouched}, args...), maxTouched+1)...).Scan(&rarely)
	return rarely, err
}
