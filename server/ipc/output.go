package ipc

import (
	"context"
	"io"
	"sync"
	"time"
)

const (
	// maxQueue is how many bytes may wait for a client to read them before senders have to
	// wait.
	maxQueue = 1 << 20
	// writeSize is how many bytes a client must read within the timeout.
	writeSize = 64 << 10
)

// output writes lines to a client in the order in which they come. Each line is whole,
// however many goroutines send. A goroutine runs only while there is something to write.
type output struct {
	w       io.Writer
	timeout time.Duration // how long a client may take for writeSize
	failed  func(error)   // is called once, when nothing more can be written

	mu      sync.Mutex // guards what follows
	queue   [][]byte
	size    int           // of queue
	writing bool          // a goroutine is writing
	drained chan struct{} // is closed, and replaced, when queue becomes empty or err is set
	err     error
}

func newOutput(w io.Writer, timeout time.Duration, failed func(error)) *output {
	return &output{w: w, timeout: timeout, failed: failed, drained: make(chan struct{})}
}

// send queues a line. It waits while too much is queued already.
func (o *output) send(ctx context.Context, line []byte) error {
	o.mu.Lock()
	for o.err == nil && o.size >= maxQueue {
		taken := o.drained
		o.mu.Unlock()
		select {
		case <-taken:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		o.mu.Lock()
	}
	defer o.mu.Unlock()
	o.add(line)
	return o.err
}

// post queues a line that may be dropped, and never waits: a caller that reports progress may
// hold a lock that others need.
func (o *output) post(line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size < maxQueue {
		o.add(line)
	}
}

// add needs the lock.
func (o *output) add(line []byte) {
	if o.err != nil {
		return
	}
	o.queue, o.size = append(o.queue, line), o.size+len(line)
	if !o.writing {
		o.writing = true
		go o.write()
	}
}

// write writes until the queue is empty.
func (o *output) write() {
	for {
		o.mu.Lock()
		queue := o.queue
		if o.queue, o.size = nil, 0; len(queue) == 0 || o.err != nil {
			o.writing = false
			o.wake()
			o.mu.Unlock()
			return
		}
		o.wake()
		o.mu.Unlock()
		for _, line := range queue {
			if err := o.writeLine(line); err != nil {
				o.fail(err)
				break
			}
		}
	}
}

func (o *output) writeLine(line []byte) error {
	timed, _ := o.w.(interface{ SetWriteDeadline(time.Time) error })
	for len(line) > 0 {
		part := line[:min(len(line), writeSize)]
		if timed != nil {
			_ = timed.SetWriteDeadline(time.Now().Add(o.timeout)) // a pipe has none
		}
		if _, err := o.w.Write(part); err != nil {
			return err
		}
		line = line[len(part):]
	}
	return nil
}

// fail makes all sends return an error.
func (o *output) fail(err error) {
	o.mu.Lock()
	first := o.err == nil
	if first {
		o.err = err
		o.wake()
	}
	o.mu.Unlock()
	if first {
		o.failed(err)
	}
}

// wake needs the lock.
func (o *output) wake() {
	close(o.drained)
	o.drained = make(chan struct{})
}

// flush waits until everything is written, nothing more can be, or the time is over.
func (o *output) flush(over <-chan time.Time) {
	o.mu.Lock()
	for o.writing && o.err == nil {
		taken := o.drained
		o.mu.Unlock()
		select {
		case <-taken:
		case <-over:
			return
		}
		o.mu.Lock()
	}
	o.mu.Unlock()
}

// failure returns why nothing more could be written, or nil.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
