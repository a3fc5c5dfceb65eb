package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// Config says where sessions are kept, and how.
type Config struct {
	Dir string // the directory of the session files

	// ParentSession is the id of the session that a new one came from, if any.
	ParentSession string
	// CWD is the directory that a new session is about, if any.
	CWD string
	// Options adjusts the sessions. Default: the zero Options.
	Options Options
	// Files adjusts how the files are written. Default: the zero file.Options,
	// which means that every append is on the disk when it returns.
	Files file.Options
}

// owning makes the session close its store, or closes it if there is no session.
func (s *Session) owning(st store.Store, err error) (*Session, error) {
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	s.owners = new(atomic.Int32)
	s.owners.Add(1)
	return s, nil
}

// New makes a session in a directory, which is made if it does not exist.
// parentSessionID is the session that this one was branched from, or "".
func New(dir string, parentSessionID string) (*Session, error) {
	return NewManager(dir).New("", parentSessionID)
}

// Load opens the session file at an absolute path. A file that does not exist
// gives an error that matches fs.ErrNotExist. Damaged lines do not prevent
// loading: see Problems.
func Load(path string) (*Session, error) { return NewManager(filepath.Dir(path)).Load(path) }

// ContinueRecent loads the most recently active session of a directory. If that is the session
// of a subagent, it loads the one that started it. It returns ErrNotExist if there is none.
func ContinueRecent(dir string) (*Session, error) { return NewManager(dir).ContinueRecent() }

// ForkFrom makes a new session in a directory with all the history of the
// session file at a path.
func ForkFrom(sourcePath string, targetDir string) (*Session, error) {
	return NewManager(targetDir).ForkFrom(sourcePath)
}

// SessionInfo describes a session in a list.
type SessionInfo struct {
	ID           string
	Path         string
	Name         string
	Created      time.Time
	Modified     time.Time // when the file was last written, which tidying up does, too
	Updated      time.Time // when something was last said in it or, if nothing was, when it was made
	MessageCount int

	ParentSession string
	Relation      string
	CWD           string
	Size          int64
	Archived      bool
	// Err is why the file cannot be read as a session, or nil. The fields above then
	// have what is known.
	Err error
}

// List describes the session files in a directory, most recently active first.
func List(dir string) ([]SessionInfo, error) { return NewManager(dir).List() }

// Directory makes, loads and lists the sessions of a directory. It is what
// NewManager returns, and the only manager that there is: a FileManager is a
// Directory by another name.
type Directory struct {
	// Config is used for all sessions. It may be changed before the first use.
	Config

	ctx context.Context // of its operations, or nil: see WithContext
}

// NewManager returns the sessions of a directory.
func NewManager(dir string) *Directory { return &Directory{Config: Config{Dir: dir}} }

// WithContext returns the same directory with operations that end when ctx ends. The sessions
// that it makes and loads have no context of their own: see Session.WithContext.
func (d *Directory) WithContext(ctx context.Context) *Directory { return &Directory{d.Config, ctx} }

func (d *Directory) context() context.Context {
	if d.ctx == nil {
		return context.Background()
	}
	return d.ctx
}

func (d *Directory) open() (*file.Store, error) { return file.Open(d.Dir, &d.Files) }

// New makes a session in a directory ("" is this one). parentSessionID is the
// session that it was branched from, or "".
func (d *Directory) New(dir string, parentSessionID string) (*Session, error) {
	cfg := d.Config
	cfg.ParentSession = parentSessionID
	if dir != "" {
		cfg.Dir = dir
	}
	return d.create(cfg)
}

// create makes a session as cfg says, in cfg.Dir or else in this directory.
func (d *Directory) create(cfg Config) (*Session, error) {
	if cfg.Dir == "" {
		cfg.Dir = d.Dir
	}
	st, err := file.Open(cfg.Dir, &cfg.Files)
	if err != nil {
		return nil, err
	}
	h := Header{ParentSession: cfg.ParentSession, CWD: cfg.CWD}
	s, err := Create(d.context(), st, h, &cfg.Options)
	return s.owning(st, err)
}

// Load opens a session of the directory, given its id or its path.
func (d *Directory) Load(pathOrID string) (*Session, error) {
	name, err := d.nameOf(pathOrID)
	if err != nil {
		return nil, err
	}
	st, err := d.open()
	if err != nil {
		return nil, err
	}
	s, err := Open(d.context(), st, name, &d.Options)
	return s.owning(st, err)
}

// nameOf returns the name of the log that a path or an id means. A path must
// lead directly into the directory.
func (d *Directory) nameOf(pathOrID string) (string, error) {
	name := pathOrID
	if strings.ContainsAny(pathOrID, `/\`) || strings.HasSuffix(pathOrID, ".jsonl") {
		path, err := filepath.Abs(pathOrID)
		if err != nil {
			return "", err
		}
		dir, err := filepath.Abs(d.Dir)
		if err != nil {
			return "", err
		}
		base, isLog := strings.CutSuffix(filepath.Base(path), ".jsonl")
		if filepath.Dir(path) != dir || !isLog {
			return "", &Error{Op: "load", Path: pathOrID, Kind: ErrInvalid, Err: fmt.Errorf("it is not a .jsonl file in %s", dir)}
		}
		name = base
	}
	return name, store.CheckName(name)
}

// ContinueRecent loads the most recently active session that can be read or, if that is the
// session of a subagent, the one that started it. It returns ErrNotExist if there is none.
func (d *Directory) ContinueRecent() (*Session, error) {
	st, err := d.open()
	if err != nil {
		return nil, err
	}
	stats, err := listStats(d.context(), st)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	var failed []error
	for len(stats) > 0 {
		n, names, unread := d.latest(st, stats)
		stats, failed = stats[n:], append(failed, unread...)
		for _, name := range names {
			s, err := Open(d.context(), st, name, &d.Options)
			if err == nil {
				return s.starter(d.context()).owning(st, nil)
			}
			failed = append(failed, err)
		}
	}
	err = &Error{Op: "continue", Path: d.Dir, Kind: ErrNotExist, Err: errors.Join(append(failed, errors.New("no session to continue"))...)}
	return nil, errors.Join(err, st.Close())
}

// modifiedSlack is by how much the time of a file may be behind that of an entry which
// was written to it: some file systems count in steps of two seconds.
const modifiedSlack = 2 * time.Second

// latest returns those of the sessions that may have been active last, the latest
// first, and how many of stats it has looked at. A file is written when something is
// said, so nothing was said in it since it was last written: once its time is before
// what was said elsewhere, neither it nor those after it need be read.
func (d *Directory) latest(st store.Store, stats []store.Stat) (n int, names []string, failed []error) {
	active := make(map[string]time.Time)
	var last time.Time
	for _, stat := range stats {
		if stat.Modified.Add(modifiedSlack).Before(last) {
			break
		}
		n++
		at, err := lastActive(d.context(), st, stat.Name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		active[stat.Name] = at
		names = append(names, stat.Name)
		if at.After(last) {
			last = at
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return active[b].Compare(active[a]) })
	return n, names, failed
}

// listStats returns the logs of a store, the most recently modified first.
func listStats(ctx context.Context, st store.Store) ([]store.Stat, error) {
	var stats []store.Stat
	all, err := store.All(ctx, st)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		stats = append(stats, l.Stat)
	}
	slices.SortFunc(stats, func(a, b store.Stat) int {
		return cmp.Or(b.Modified.Compare(a.Modified), cmp.Compare(b.Name, a.Name))
	})
	return stats, nil
}

// ForkFrom makes a new session in the directory with all the history of the
// session file at a path.
func (d *Directory) ForkFrom(sourcePath string) (*Session, error) {
	source, err := NewManager(filepath.Dir(sourcePath)).WithContext(d.context()).Load(sourcePath)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	st, err := d.open()
	if err != nil {
		return nil, err
	}
	s, err := source.Fork(d.context(), st, &ForkOptions{Options: &d.Options})
	return s.owning(st, err)
}

// List describes the sessions of the directory, most recently active first. It reads every
// file, to count the messages.
func (d *Directory) List() ([]SessionInfo, error) {
	st, err := d.open()
	if err != nil {
		return nil, err
	}
	defer st.Close()
	stats, err := listStats(d.context(), st)
	if err != nil {
		return nil, err
	}
	infos := make([]SessionInfo, 0, len(stats))
	for _, stat := range stats {
		info := SessionInfo{ID: stat.Name, Path: st.Path(stat.Name), Modified: stat.Modified, Size: stat.Size, Archived: stat.Archived}
		info.Updated = stat.Modified // unless the log says more
		info.Err = d.describe(st, &info)
		infos = append(infos, info)
	}
	slices.SortStableFunc(infos, func(a, b SessionInfo) int { return b.Updated.Compare(a.Updated) })
	return infos, nil
}

// describe fills in the members that are in the log.
func (d *Directory) describe(st store.Store, info *SessionInfo) (err error) {
	s, err := Open(d.context(), st, info.ID, &d.Options)
	if err != nil {
		return err
	}
	defer s.Close()
	h := s.Header()
	info.Created, info.ParentSession = h.CreatedAt, h.ParentSession
	info.Relation, info.CWD = h.Relation, h.CWD
	if info.Updated, err = lastActive(d.context(), st, info.ID); err != nil {
		return err
	}
	if info.MessageCount, err = s.MessageCount(); err != nil {
		return err
	}
	info.Name, err = s.Name()
	return err
}
