package notify

import (
	"slices"

	"golang.org/x/sys/unix"
)

// shared are the file systems that others may write without this kernel's knowledge: over a
// network, from a host, or by a program that provides the files (FUSE).
var shared = []int64{
	unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC,
	unix.V9FS_MAGIC, unix.FUSE_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.NCP_SUPER_MAGIC,
	0x0bd00bd0, // Lustre
	0x47504653, // GPFS
	0x01161970, // GFS2
	0x7461636f, // OCFS2
	0x786f4256, // folders of VirtualBox
	0xbacbacbc, // folders of VMware
}

// canTell returns why there can be no notices of a directory.
func canTell(dir string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return err
	}
	if slices.Contains(shared, int64(uint32(s.Type))) {
		return errElsewhere
	}
	return nil
}
