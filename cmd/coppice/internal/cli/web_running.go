package cli

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/store/vfs"
)

// webRun is a coppice web on a home. As long as it runs, it holds a lock and has left a note, so
// that a person who calls it twice gets the page that they have. The lock shows that the address in
// the note is still its own: whatever else may be there later gets nothing from us. Both files are
// of this user and in their cache.
type webRun struct {
	path string
	lock vfs.File // nil if it could not be had: then there is no note
}

// webNote has the token of the run, with which a browser can be signed in. It is worth nothing once
// the run has ended.
type webNote struct {
	Address string `json:"address"`
	Token   string `json:"token"`
	Tools   bool   `json:"tools"`
	Machine string `json:"machine"` // several machines may share the user's files
}

// beginWeb returns a run, and the note of another one if that runs already.
func beginWeb(h *home.Home) (*webRun, *webNote) {
	r := &webRun{path: h.CachePath(".web")}
	if r.path == "" || vfs.Mkdir(vfs.OS{KeepOwner: true}, filepath.Dir(r.path), 0o700) != nil {
		return r, nil
	}
	lock, err := vfs.OS{KeepOwner: true}.OpenFile(r.path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return r, nil
	}
	if free, err := lock.TryLock(); err == nil && free {
		r.lock = lock
		_ = os.Remove(r.path) // of one that was killed: by now, another program may be at its address
		return r, nil
	}
	_ = lock.Close()
	var n webNote
	data, err := vfs.ReadFile(r.path, vfs.SmallFile)
	if machine, _ := os.Hostname(); err != nil || json.Unmarshal(data, &n) != nil || n.Machine != machine {
		return r, nil
	}
	return r, &n
}

// note leaves the note. Without it, the next coppice web starts a server of its own.
func (r *webRun) note(s *begun, tools bool) {
	if r.lock == nil {
		return
	}
	machine, _ := os.Hostname()
	data, _ := json.Marshal(webNote{s.address, s.secret, tools, machine}) // strings always encode
	_ = vfs.Replace(vfs.OS{KeepOwner: true}, r.path, vfs.Replacement{Perm: 0o600}, vfs.Data(data))
}

// end takes the note back. The file of the lock stays: another run may have opened it.
func (r *webRun) end() error {
	if r.lock == nil {
		return nil
	}
	_ = os.Remove(r.path) // it may never have been written
	return r.lock.Close()
}

// serves reports whether the page of a run is what was asked for.
func (n *webNote) serves(f *webFlags, chosen bool) bool {
	return n != nil && (n.Tools || !f.tools) && f.live == liveFlags{} && (!chosen || n.isAt(f.addr))
}

// isAt reports whether a run is at an address. A name such as localhost is not what is in the note.
func (n *webNote) isAt(addr string) bool {
	at, err := net.ResolveTCPAddr("tcp", addr)
	return err == nil && n.Address == "http://"+at.String()
}

// openRunning opens the page of a run. It reports whether there was one.
func (a *app) openRunning(ctx context.Context, f *webFlags, n *webNote) bool {
	page, err := signInPage(ctx, n.Address, n.Token)
	if err != nil {
		return false // it is about to end
	}
	a.say("coppice web runs already on these sessions, at %s", n.Address)
	a.showPage(ctx, f, n.Address, page, browserReads)
	return true
}
