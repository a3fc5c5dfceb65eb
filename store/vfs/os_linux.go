package vfs

import "golang.org/x/sys/unix"

// Sync implements File. fdatasync writes the size as well, and leaves out only
// the times, which would cost another write. A failed sync is not tried again
// except when interrupted: the kernel reports a lost page once and then forgets.
func (f *osFile) Sync() error {
	if err := f.begin("sync"); err != nil {
		return err
	}
	defer f.end()
	return f.fail("sync", retry(func() error { return unix.Fdatasync(int(f.fd)) }))
}
