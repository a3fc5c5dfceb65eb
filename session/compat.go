package session

import "path/filepath"

// The names in this file are second ways to do what other names of the package do. Programs
// that were written for the first designs use them, so they stay. The package comment says
// what to use instead: see "Older names" in doc.go.

// GetContext returns the entries to send to a model, from the summary in force to the
// leaf: the Entries of Context.
func (s *Session) GetContext() ([]Entry, error) {
	c, err := s.buildContext(ContextOptions{}, false)
	if err != nil {
		return nil, err
	}
	return c.Entries, nil
}

// GetTree returns the whole session as a tree of its entries, with their labels, one node for each
// root. Entries of type TypeLeaf, which only move the leaf, are left out unless they have children.
// An unreadable entry has the type TypeGap.
func (s *Session) GetTree() ([]TreeNode, error) {
	nodes, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	labels, err := s.Labels()
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(nodes))
	s.each(nodes, func(i int) Entry { return gapEntry(nodes, i) }, func(e Entry, failed error) bool {
		entries, err = append(entries, e), failed
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return growTree(nodes, entries, labels), nil
}

// CreateBranchedSession forks the path to an entry, closes the new session and returns its
// path, or its id in a store without files.
func (s *Session) CreateBranchedSession(leafID string) (string, error) {
	if leafID == "" {
		return "", s.errNoEntry("fork", leafID)
	}
	forked, err := s.Fork(s.context(), s.store, &ForkOptions{At: leafID, Options: &s.opts})
	if err != nil {
		return "", err
	}
	path := forked.File()
	if path == "" {
		path = forked.ID()
	}
	return path, forked.Close()
}

// BranchWithSummary moves the leaf to an earlier entry and appends there a
// summary of the path that is left, which the model will see. It returns the
// summary's id, which is the new leaf.
func (s *Session) BranchWithSummary(branchFromID string, summary string) (string, error) {
	if branchFromID == "" {
		return "", s.errNoEntry("branch", branchFromID)
	}
	return s.last("branch", func(tx *Tx) {
		told := &BranchSummaryEntry{Summary: summary, FromID: tx.Leaf()}
		tx.moveTo(branchFromID)
		tx.Append(Entry{Type: TypeBranchSummary, BranchSummary: told})
	})
}

// ResetLeaf moves the leaf before the first entry: the next append will begin another root.
func (s *Session) ResetLeaf() error {
	_, err := s.last("branch", func(tx *Tx) { tx.Branch("") })
	return err
}

// Append is AppendEntry without the id. Its parent is the leaf, whatever ParentID says.
func (s *Session) Append(entry Entry) error {
	if entry.Type != TypeLeaf {
		entry.ParentID = nil
	}
	_, err := s.AppendEntry(entry)
	return err
}

// AppendModelChange records which model answers from here on.
func (s *Session) AppendModelChange(provider, modelID string) (string, error) {
	return s.AppendEntry(ModelChange(provider, modelID))
}

// AppendThinkingLevelChange records how much effort the model spends from here on.
func (s *Session) AppendThinkingLevelChange(level string) (string, error) {
	return s.AppendEntry(ThinkingLevel(level))
}

// AppendCompaction replaces everything before an entry with a summary: see Compaction.
func (s *Session) AppendCompaction(summary, firstKeptID string, tokens int) (string, error) {
	return s.AppendEntry(Compaction(summary, firstKeptID, tokens))
}

// AppendSessionInfo gives the session a display name.
func (s *Session) AppendSessionInfo(name string) (string, error) { return s.AppendEntry(Name(name)) }

// AppendCustomEntry records an extension's data. The model never sees it.
func (s *Session) AppendCustomEntry(customType string, data map[string]any) (string, error) {
	return s.AppendEntry(Custom(customType, data))
}

// SetLabel names an entry; an empty label removes its name. It returns the id of the label
// entry.
func (s *Session) SetLabel(targetID string, label string) (string, error) {
	return s.AppendEntry(Label(targetID, label))
}

// Manager makes and loads sessions. A Directory has one: see Directory.Manager.
type Manager interface {
	New(cfg Config) (*Session, error)
	Load(path string) (*Session, error)
}

// Manager returns the directory as a Manager. The two are one type with two sets
// of methods, because New takes a Config there and strings here, and no type can
// have both.
func (d *Directory) Manager() *FileManager { return (*FileManager)(d) }

// FileManager is a Directory as a Manager. Its zero value is ready to use: it
// works in whichever directory a call names.
type FileManager Directory

var _ Manager = FileManager{}

// New makes a session as cfg says, in cfg.Dir or else in the manager's own
// directory.
func (m FileManager) New(cfg Config) (*Session, error) { return (*Directory)(&m).create(cfg) }

// Load opens the session file at a path.
func (m FileManager) Load(path string) (*Session, error) {
	d := Directory(m)
	if d.Dir == "" {
		d.Dir = filepath.Dir(path)
	}
	return d.Load(path)
}
