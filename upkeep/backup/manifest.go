package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

const (
	manifestName = "manifest.jsonl"
	version      = 1
	// maxManifest is far more than any real home needs: a backup may come from
	// anywhere, and its manifest is held in memory.
	maxManifest = 1 << 30
)

// manifest lists the files of a backup.
type manifest struct {
	created time.Time
	files   []entry // sorted by path
}

// header is the first line of a manifest.
type header struct {
	Version int       `json:"coppice_backup"`
	Created time.Time `json:"created"`
}

// entry is the line of a file.
type entry struct {
	Path     string    `json:"path"` // below the home, with slashes
	Size     int64     `json:"size"`
	SHA256   string    `json:"sha256"`
	Modified time.Time `json:"modified"`
}

// footer is the last line. Without it, a manifest that was cut off would look like one
// of a smaller home.
type footer struct {
	Files  int    `json:"files"`
	SHA256 string `json:"sha256"` // of all bytes before this line
}

func (m *manifest) write(w io.Writer) error {
	sum := sha256.New()
	lines := json.NewEncoder(io.MultiWriter(w, sum))
	lines.SetEscapeHTML(false)
	if err := lines.Encode(header{version, m.created}); err != nil {
		return err
	}
	for i := range m.files {
		if err := lines.Encode(&m.files[i]); err != nil {
			return err
		}
	}
	return json.NewEncoder(w).Encode(footer{len(m.files), hex.EncodeToString(sum.Sum(nil))})
}

// errManifest says that a manifest cannot be trusted.
var errManifest = errors.New("the list of files is damaged, so more may be missing than is named here")

// readManifest reads a manifest, which may come from anywhere. From a damaged one it also
// returns what can be read: each line names its content by a hash, so a wrong line finds
// nothing. A line is left out if we would never write it, because its path leads elsewhere.
func readManifest(backup string, r io.Reader) (*manifest, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxManifest))
	if err != nil {
		return nil, err
	}
	m := &manifest{}
	for line := range bytes.Lines(data) {
		var e entry
		if json.Unmarshal(line, &e) == nil && e.isValid() {
			m.files = append(m.files, e)
		} else if err := m.readHead(backup, line); err != nil {
			return nil, err
		}
	}
	m.sort()
	end := bytes.LastIndexByte(bytes.TrimSuffix(data, []byte("\n")), '\n') + 1
	var last footer
	sum := sha256.Sum256(data[:end])
	if json.Unmarshal(data[end:], &last) == nil && last.SHA256 == hex.EncodeToString(sum[:]) && last.Files == len(m.files) && !m.created.IsZero() {
		return m, nil
	}
	m.files = slices.DeleteFunc(m.files, func(e entry) bool { return !e.isPlausible() })
	return m, errManifest
}

// readHead reads the first line, and ignores any other.
func (m *manifest) readHead(backup string, line []byte) error {
	var first header
	switch {
	case json.Unmarshal(line, &first) != nil:
	case first.Version > version:
		return &store.Error{
			Op: "read backup", Path: backup, Hint: "use a newer version of coppice",
			Err: &refusal{fmt.Errorf("it has version %d; this program knows %d", first.Version, version), store.ErrInvalid},
		}
	case first.Version > 0:
		m.created = first.Created
	}
	return nil
}

func (e *entry) isValid() bool {
	_, kept := file.IsKept(e.Path)
	_, sum := store.Ref("sha256:" + e.SHA256).Hex()
	return kept && sum && e.Size >= 0
}

// isPlausible reports whether a line of a damaged manifest can be right. A blob is
// named by its hash, so one with another name would be useless.
func (e *entry) isPlausible() bool {
	room, _ := file.IsKept(e.Path)
	return room != file.AreaBlob || path.Base(e.Path) == e.SHA256
}

// sort sorts the files by path. If a path is there twice, the first file counts.
func (m *manifest) sort() {
	slices.SortStableFunc(m.files, func(a, b entry) int { return strings.Compare(a.Path, b.Path) })
	m.files = slices.CompactFunc(m.files, func(a, b entry) bool { return a.Path == b.Path })
}

// entries returns the files, if there are any.
func (m *manifest) entries() []entry {
	if m == nil {
		return nil
	}
	return m.files
}

// logs returns the files that have a log, plain or archived, by its name.
func (m *manifest) logs() map[string]*entry {
	logs := make(map[string]*entry)
	for i := range m.entries() {
		if e := &m.files[i]; e.Size > 0 {
			logs[file.KeptLog(e.Path)] = e
		}
	}
	delete(logs, "") // files that are no log
	return logs
}

// blobs returns the blobs that are what their names say, by their hashes.
func (m *manifest) blobs() map[string]entry {
	blobs := make(map[string]entry)
	for _, e := range m.entries() {
		if room, _ := file.IsKept(e.Path); room == file.AreaBlob && e.SHA256 == path.Base(e.Path) {
			blobs[e.SHA256] = e
		}
	}
	return blobs
}

// sums returns the hashes of everything in the backup.
func (m *manifest) sums() map[string]bool {
	sums := make(map[string]bool)
	for i := range m.entries() {
		sums[m.files[i].SHA256] = true
	}
	return sums
}

func (m *manifest) size() (size int64) {
	for i := range m.files {
		size += m.files[i].Size
	}
	return size
}
