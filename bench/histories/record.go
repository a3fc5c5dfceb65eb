//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// The kinds of operations. Those from create on are done in windows.
const (
	kindAppend   = "append"
	kindRead     = "read"     // from a position to the end
	kindBackward = "backward" // from a position to the beginning
	kindCreate   = "create"
	kindLook     = "look"  // open it and read it all
	kindAgain    = "again" // read it all through the handle of the last look
	kindRedact   = "redact"
	kindFork     = "fork"
	kindLookFork = "look fork"
	kindTake     = "take"
	kindHeld     = "held" // ask whether the lease is still one's own
	kindRelease  = "release"
	kindDied     = "died" // a process was killed
	kindChange   = "change"
	kindNote     = "note"
)

// The results of operations.
const (
	ok       = "ok"
	conflict = "conflict"
	replaced = "replaced"
	notExist = "not exist"
	exist    = "exist"
	locked   = "locked"
	unknown  = "unknown" // it may have happened, or may still happen
	failed   = "failed"  // it has not happened, for another reason
)

// op is one operation of a history.
type op struct {
	Worker int    `json:"worker"`
	Call   int64  `json:"call"`             // in nanoseconds, by a clock that all processes share
	Return int64  `json:"return,omitempty"` // 0 before the answer
	Kind   string `json:"kind"`
	Object string `json:"object"`

	ID   int64 `json:"id,omitempty"`   // of the entry, fork or lease; the new value of a note
	Life int   `json:"life,omitempty"` // how often the log that it is about was redacted, and 1
	At   int64 `json:"at,omitempty"`   // the position, in a window the number of lines; the old value of a note

	Result string  `json:"result,omitempty"`
	End    int64   `json:"end,omitempty"`
	IDs    []int64 `json:"ids,omitempty"` // what was read; what a fork was given
	Error  string  `json:"error,omitempty"`
}

func (o *op) String() string {
	text, _ := json.Marshal(o) // no field can fail
	return string(text)
}

// refused reports whether nothing has happened, for a reason that says nothing about the data.
func (o *op) refused() bool {
	return o.Result == failed || o.Result == locked && o.Kind != kindTake && o.Kind != kindHeld
}

// A process has so many workers at most, so that the id of an entry tells its process.
const maxWorkers = 64

func idOf(worker, n int) int64 { return int64(worker)<<32 | int64(n) }

func processOf(id int64) int { return int(id>>32) / maxWorkers }

// clock is one for all processes of the machine, which nobody sets.
func clock() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // there is such a clock on every Unix
	}
	return now.Nano()
}

// record writes down what one worker does.
type record struct {
	worker int
	to     io.Writer
	err    error
	ids    int
}

func (r *record) id() int64 {
	r.ids++
	return idOf(r.worker, r.ids)
}

func (r *record) put(o *op) {
	line := append([]byte(o.String()), '\n')
	if _, err := r.to.Write(line); err != nil && r.err == nil {
		r.err = err
	}
}

// do writes an operation down, does it, and writes down what came of it.
func (r *record) do(o *op, call func() error) string {
	o.Worker = r.worker
	o.Call = clock()
	r.put(o)
	err := call()
	o.Return = clock()
	if o.Result = resultOf(err); o.Result == failed {
		o.Error = err.Error()
	}
	r.put(o)
	return o.Result
}

func resultOf(err error) string {
	switch {
	case err == nil:
		return ok
	case errors.Is(err, store.ErrUnknown):
		return unknown
	case errors.Is(err, store.ErrConflict):
		return conflict
	case errors.Is(err, store.ErrReplaced):
		return replaced
	case errors.Is(err, store.ErrNotExist):
		return notExist
	case errors.Is(err, store.ErrExist):
		return exist
	case errors.Is(err, store.ErrLocked):
		return locked
	}
	return failed
}

// load reads what the workers of a process have written down. Of what a killed one was about to
// do, the outcome is unknown; of what it was about to write down, too.
func load(dir string, process int) (all []op, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("%d-*.jsonl", process)))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := vfs.ReadFile(path, 1<<31)
		if err != nil {
			return nil, err
		}
		ops, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, ops...)
	}
	return all, nil
}

func parse(text []byte) (ops []op, err error) {
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // killed while it wrote
		}
		var o op
		if err := json.Unmarshal(line, &o); err != nil {
			return nil, err
		}
		if o.Return != 0 {
			ops = ops[:len(ops)-1] // now the answer is known
		} else {
			o.Result = unknown
		}
		ops = append(ops, o)
	}
	return ops, nil
}

func create(dir string, process, worker int) (*os.File, error) {
	return os.Create(filepath.Join(dir, fmt.Sprintf("%d-%d.jsonl", process, worker)))
}
