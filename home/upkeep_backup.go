package home

import (
	"context"
	"path/filepath"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/upkeep/backup"
)

// BackupRequest says where to make a backup of the home.
type BackupRequest struct {
	// To is a directory, or a file whose name ends in .tar.zst. An existing backup is brought
	// up to date, or replaced.
	To string `json:"to"`
	// Partial replaces an older backup even if some files of the home cannot be read.
	Partial bool `json:"partial,omitempty"`
}

// BackupResult is what was backed up. If some files could not be read, the backup kept an older
// version of some, or could not do that because the list of what was redacted is damaged, the error
// is ErrPartial.
type BackupResult struct {
	Path string `json:"path"`
	backup.Result
}

// Backup makes a backup of the home, or brings one up to date: every session, removed or not,
// the content that they refer to, and all notes of the home. It leaves out the index, which can
// be rebuilt, and the settings, which are the user's. Others may write while it runs. If
// anything interrupts it, an older backup stays whole.
func (u *Upkeep) Backup(ctx context.Context, r BackupRequest) (*BackupResult, error) {
	if err := u.home.checkOpen("upkeep.backup"); err != nil {
		return nil, err
	}
	u.home.beforeWriting(ctx) // a backup would copy secrets that an unfinished redaction left
	to := realPath(r.To)
	done, err := backup.Make(ctx, u.home.store, backup.Request{To: to, Partial: r.Partial, Progress: u.home.progress(ctx, "backing up")})
	if done == nil {
		return nil, err
	}
	if err == nil && len(done.Unread)+len(done.Older)+len(done.Damaged) > 0 {
		err = ErrPartial
	}
	return &BackupResult{to, *done}, err
}

// realPath follows the symbolic links of the part that exists: a backup or a home may
// be kept on another disk.
func realPath(path string) string {
	if path == "" {
		return ""
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	if parent := filepath.Dir(abs); parent != abs {
		return filepath.Join(realPath(parent), filepath.Base(abs))
	}
	return abs
}

// VerifyBackupRequest says which backup to check.
type VerifyBackupRequest struct {
	Path string `json:"path"`
}

// BackupContents is what a backup holds.
type BackupContents struct {
	Path string `json:"path"`
	backup.Contents
}

// VerifyBackup reads all of a backup and checks it: every file against its hash, every line
// of every session, and every reference to content. If the backup is damaged, it returns the
// result and a *backup.DamagedError, whose kind is KindCorrupt. Only Progress of the options
// is used.
func VerifyBackup(ctx context.Context, r VerifyBackupRequest, o *Options) (*BackupContents, error) {
	h := &Home{}
	if o != nil {
		h.opts = *o
	}
	path := realPath(r.Path)
	c, err := backup.Verify(ctx, backup.VerifyRequest{Path: path, Progress: h.progress(ctx, "verifying")})
	if c == nil {
		return nil, err
	}
	if err == nil && len(c.Damaged) > 0 {
		err = &backup.DamagedError{Backup: path, Damaged: c.Damaged}
	}
	return &BackupContents{path, *c}, err
}

// RestoreBackupRequest says which backup becomes a home.
type RestoreBackupRequest struct {
	From string `json:"from"`
	// Partial restores what can be read of a damaged backup.
	Partial bool `json:"partial,omitempty"`
}

// RestoreBackupResult is what was restored.
type RestoreBackupResult struct {
	Dir     string    `json:"dir"` // of the home
	From    string    `json:"from"`
	Created time.Time `json:"created"` // when the backup was made
	// Sessions, Files and Size are what the home has now.
	Sessions int   `json:"sessions"`
	Files    int   `json:"files"`
	Size     int64 `json:"size"`
	// Damaged are the files that are missing from the home, or are damaged in it.
	Damaged []backup.Fault `json:"damaged"`
}

// RestoreBackup turns a backup into a home. where is as for Open; it must be an empty
// directory or not exist, or else the error matches session.ErrExist. The home appears when
// all of it is on the disk. A backup that is damaged is refused with a *backup.DamagedError,
// unless the request has Partial: then the error is ErrPartial.
func RestoreBackup(ctx context.Context, where string, r RestoreBackupRequest, o *Options) (*RestoreBackupResult, error) {
	h, err := prepare(o)
	if err != nil {
		return nil, err
	}
	at, err := h.settings.locate(where)
	if err == nil && at.scheme != inFiles {
		err = &session.Error{Op: "restore backup to", Path: at.where, Err: session.Invalidf("it is not a directory")}
	}
	if err != nil {
		return nil, err
	}
	dir, from := realPath(at.where), realPath(r.From)
	c, err := backup.Restore(ctx, backup.RestoreRequest{From: from, Dir: dir, Partial: r.Partial, Progress: h.progress(ctx, "restoring")})
	if err != nil {
		return nil, err
	}
	if len(c.Damaged) > 0 {
		err = ErrPartial
	}
	return &RestoreBackupResult{dir, from, c.Created, c.Sessions, c.Files, c.Size, c.Damaged}, err
}
