package remote

import (
	"context"
	"errors"
	"net/http"
	"path"

	"github.com/coppice-dev/coppice/store"
)

// operation is what a server does for a request.
type operation struct {
	run   func(*call) error
	reads bool // it changes nothing and locks nothing
}

// Watches reports whether the answer to a request goes on for as long as the client listens.
func Watches(r *http.Request) bool { return path.Base(r.URL.Path) == "watch" }

func reads(run func(*call) error) operation  { return operation{run, true} }
func writes(run func(*call) error) operation { return operation{run, false} }

// operations are all operations, by name.
var operations = map[string]operation{
	"hello":  reads((*call).hello),
	"stat":   reads((*call).stat),
	"list":   reads((*call).list),
	"create": writes((*call).create),
	"remove": writes((*call).remove),

	"open":    reads((*call).open),
	"close":   reads((*call).close),
	"end":     reads(withLog((*call).end)),
	"current": reads(withLog((*call).current)),
	"flush":   reads(withLog((*call).flush)),
	"read":    reads(withLog((*call).read)),
	"watch":   reads(withLog((*call).watch)),
	"append":  writes(withLog((*call).append)),

	"blob": reads((*call).blob),
	"put":  writes((*call).put),

	"note":        reads((*call).note),
	"notes":       reads((*call).notes),
	"note-change": writes((*call).changeNote),

	"hold":    writes((*call).hold),
	"release": writes((*call).releaseLease),
}

// withLog turns an operation on an open log into one on a handle.
func withLog(run func(*call, store.Log) error) func(*call) error {
	return func(c *call) error {
		log, done, err := c.log(c.Handle)
		if err != nil {
			return err
		}
		defer done()
		return run(c, log)
	}
}

func (c *call) hello() error {
	return c.out.result(result{Version: version, Limits: &c.limits})
}

// opened answers with a handle.
func (c *call) opened(log store.Log) error {
	end, err := log.End(c.ctx)
	if err != nil {
		return errors.Join(err, log.Close())
	}
	id, err := c.addHandle(log)
	if err != nil {
		return err
	}
	return c.out.result(result{Handle: id, End: end})
}

// open opens a log, perhaps for a client whose handle is gone.
func (c *call) open() error {
	log, err := c.store.Open(c.ctx, c.Name)
	if err != nil {
		return err
	}
	if c.Seen != nil {
		if err := c.mustHave(log); err != nil {
			return errors.Join(err, log.Close())
		}
	}
	return c.opened(log)
}

// mustHave makes sure that a log has the lines that a client has seen.
func (c *call) mustHave(log store.Log) error {
	if c.Seen.Apart || len(c.Seen.Runs) > maxRuns {
		return bad(malformed("too much was seen"))
	}
	for _, was := range c.Seen.Runs {
		now := run{From: was.From, To: was.From}
		for line, err := range log.Forward(c.ctx, was.From) {
			if err != nil && !errors.Is(err, store.ErrInvalid) && !errors.Is(err, store.ErrConflict) {
				return err
			}
			if err != nil || line.Next > was.To {
				break // no line begins or ends there any more
			}
			now.To = line.Next
			now.Sum.add(sumOf(line.Data))
			if now.To == was.To {
				break
			}
		}
		if now != was {
			return &store.Error{Op: "open", Name: c.Name, Kind: store.ErrReplaced}
		}
	}
	return nil
}

func (c *call) close() error { return c.drop(c.Handle) }

func (c *call) end(log store.Log) error {
	end, err := log.End(c.ctx)
	if err != nil {
		return err
	}
	return c.out.result(result{End: end})
}

func (c *call) current(log store.Log) error { return log.Current() }

func (c *call) flush(log store.Log) error { return log.Flush(c.ctx) }

func (c *call) read(log store.Log) error {
	lines := log.Forward(c.ctx, c.At)
	if c.Back {
		lines = log.Backward(c.ctx, c.At)
	}
	for line, err := range lines {
		if err == nil {
			err = c.line(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// watch sends the existing lines in large pieces, and then each new line at once.
func (c *call) watch(log store.Log) error {
	from := c.At
	for line, err := range log.Forward(c.ctx, from) {
		if err != nil {
			break // the watch reports the error
		}
		if err := c.line(line); err != nil {
			return err
		}
		from = line.Next
	}
	if err := c.out.flush(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	defer context.AfterFunc(c.watching, cancel)()
	for line, err := range log.Watch(ctx, from) {
		if err == nil {
			err = c.line(line)
		}
		if err == nil {
			err = c.out.flush()
		}
		if err != nil {
			return err
		}
	}
	return c.ctx.Err()
}

// append answers twice: where the log ends, and that the lines are durable.
func (c *call) append(log store.Log) error {
	var lines [][]byte
	size := int64(0)
	for line, err := range c.lines {
		if err != nil {
			return err
		}
		if size += int64(len(line)); size > maxData {
			return tooLarge("append", maxData)
		}
		lines = append(lines, c.in.detach())
	}
	end, commit, err := log.Start(c.ctx, c.At, lines...)
	if err != nil {
		return err
	}
	if err := errors.Join(c.out.result(result{End: end}), c.out.flush()); err != nil {
		return errors.Join(err, commit())
	}
	return commit()
}

func (c *call) stat() error {
	stat, err := c.store.Stat(c.ctx, c.Name)
	if err != nil {
		return err
	}
	return c.out.result(result{Stat: &stat})
}

func (c *call) list() error {
	all, err := store.All(c.ctx, c.store)
	if err != nil {
		return err
	}
	for i := range all {
		r := result{Stat: &all[i].Stat}
		if all[i].Err != nil {
			r.Error = describe(all[i].Err, "list", c.store.Where())
		}
		if err := c.out.result(r); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) create() error {
	log, err := c.store.Create(c.ctx, c.Name, c.lines)
	if err != nil {
		return err
	}
	return c.opened(log)
}

func (c *call) remove() error {
	if c.End != nil {
		return c.store.RemoveAt(c.ctx, c.Name, *c.End)
	}
	return c.store.Remove(c.ctx, c.Name)
}
