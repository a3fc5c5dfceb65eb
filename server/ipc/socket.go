package ipc

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/store/vfs"
)

// maxSocketPath is the longest path that every system allows.
const maxSocketPath = 103

// SocketPath returns where a server listens by default: coppice.sock in the user's runtime
// directory, XDG_RUNTIME_DIR, or else in a private directory.
func SocketPath(getenv func(string) string) string {
	if dir := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "coppice.sock")
	}
	own := "coppice"
	if uid := os.Getuid(); uid >= 0 { // the directory for temporary files may be shared
		own += "-" + strconv.Itoa(uid)
	}
	return filepath.Join(os.TempDir(), own, "coppice.sock")
}

// Listen listens on a unix socket that only the user may connect to. It creates a missing
// directory, and replaces the socket of a server that has died. If a server listens there,
// the error has home.KindLocked. Closing the listener removes the socket.
func Listen(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, invalid("socket", "the path of a socket has at most %d bytes; %s has %d", maxSocketPath, path, len(path))
	}
	dir := filepath.Dir(path)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("the directory of the socket: %w", err)
	}
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	lock, err := lockSocket(path)
	if err != nil {
		return nil, err
	}
	l, err := listen(path)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &listener{l, lock}, nil
}

// listener is a socket with its lock.
type listener struct {
	net.Listener
	lock vfs.File
}

// Close removes the socket before another server can create its own.
func (l *listener) Close() error {
	err := l.Listener.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return errors.Join(err, l.lock.Close())
}

// lockSocket makes sure that of two servers that start at the same time, neither removes the
// other's socket. The lock's file stays: a server that is about to lock it may have opened it.
func lockSocket(path string) (vfs.File, error) {
	lock, err := vfs.OS{}.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the lock of the socket: %w", err)
	}
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = listening(path)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func listening(path string) error {
	return &home.ErrorInfo{
		Kind: home.KindLocked, Message: "a server is already listening on " + path,
		Hint: "use that one, stop it, or listen on another socket",
	}
}

// listen needs the lock.
func listen(path string) (net.Listener, error) {
	was, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !isSocket(was):
		return nil, &home.ErrorInfo{Kind: home.KindExists, Message: path + " is not a socket; it was left alone", Hint: "choose another path"}
	default:
		if other, err := net.Dial("unix", path); err == nil { // another program's: a server of ours would hold the lock
			return nil, errors.Join(listening(path), other.Close())
		} else if !errors.Is(err, errRefused) {
			return nil, err
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	// Until then the umask decides who can connect; checkPeer checks them anyway.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
