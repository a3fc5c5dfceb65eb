package remote

import (
	"context"
	"errors"
	"net/http"
	"path"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// operation is what a server does for a request.
type operation struct {
	run       func(*call) error
	writes    bool // it changes something, or concerns more than logs: not in the trash
	keeps     bool // it keeps the store of the trash open
	onlyReads bool // see OnlyReads
}

// OnlyReads reports whether a request changes nothing and keeps nobody from changing anything.
func OnlyReads(r *http.Request) bool { return operations[path.Base(r.URL.Path)].onlyReads }

// Watches reports whether the answer to a request goes on for as long as the client listens.
func Watches(r *http.Request) bool { return path.Base(r.URL.Path) == "watch" }

func reads(run func(*call) error) operation  { return operation{run: run, onlyReads: true} }
func writes(run func(*call) error) operation { return operation{run: run, writes: true} }

// operations are all operations, by name.
var operations = map[string]operation{
	"hello":    reads((*call).hello),
	"open":     {run: (*call).open, keeps: true, onlyReads: true},
	"again":    {run: (*call).again, keeps: true, onlyReads: true},
	"close":    reads((*call).close),
	"end":      reads(withLog((*call).end)),
	"current":  reads(withLog((*call).current)),
	"flush":    reads(withLog((*call).flush)),
	"forward":  reads(withLog((*call).forward)),
	"backward": reads(withLog((*call).backward)),
	"watch":    reads(withLog((*call).watch)),
	"append":   writes(withLog((*call).append)),
	"pin":      writes(withLog((*call).pin)),

	"stat":   reads((*call).stat),
	"list":   reads((*call).list),
	"create": writes((*call).create),
	"remove": writes((*call).remove),

	"remove-at": writes((*call).removeAt),

	"trash":         reads((*call).trash),
	"trash-add":     writes((*call).addToTrash),
	"trash-take":    writes((*call).takeToTrash),
	"trash-restore": writes((*call).restore),
	"trash-empty":   writes((*call).empty),

	"blob":         reads((*call).blob),
	"blobs":        reads((*call).blobs),
	"unreferenced": writes((*call).unreferenced),
	"put":          writes((*call).put),
	"hold":         writes((*call).hold),
	"collect":      writes((*call).collect),

	"note":        reads((*call).note),
	"notes":       reads((*call).notes),
	"note-write":  writes((*call).writeNote),
	"note-remove": writes((*call).removeNote),
	"note-change": writes((*call).changeNote),

	"parts":       writes((*call).parts),
	"copies":      writes((*call).copies),
	"part":        writes((*call).openPart),
	"part-lines":  writes((*call).partLines),
	"part-edit":   writes((*call).editPart),
	"part-remove": writes((*call).removePart),

	"batch":        writes((*call).newBatch),
	"batch-add":    writes((*call).addToBatch),
	"batch-commit": writes((*call).commitBatch),

	"keep":    writes((*call).keepLease),
	"reply":   writes((*call).reply),
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
	of := c.store
	if !c.Trash {
		of = nil
	}
	id, err := c.keep(log, of)
	if err != nil {
		return err
	}
	return c.out.result(result{Handle: id, End: end})
}

func (c *call) open() error {
	log, err := c.store.Open(c.ctx, c.Name)
	if err == nil {
		err = c.opened(log)
	}
	if err != nil && c.Trash {
		err = errors.Join(err, c.store.Close())
	}
	return err
}

// again opens a log for a client whose handle is gone.
func (c *call) again() error {
	if c.Seen == nil {
		return bad(malformed("again what?"))
	}
	log, err := c.store.Open(c.ctx, c.Name)
	if err == nil {
		if err = c.mustHave(log); err != nil {
			err = errors.Join(err, log.Close())
		} else {
			err = c.opened(log)
		}
	}
	if err != nil && c.Trash {
		err = errors.Join(err, c.store.Close())
	}
	return err
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

func (c *call) forward(log store.Log) error {
	for line, err := range log.Forward(c.ctx, c.At) {
		if err == nil {
			err = c.line(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *call) backward(log store.Log) error {
	for line, err := range log.Backward(c.ctx, c.At) {
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
		lines = append(lines, c.in.keep())
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

func (c *call) pin(log store.Log) error {
	release, err := log.Pin(c.ctx)
	if err != nil {
		return err
	}
	return c.granted(release, c.pace.pin)
}

// granted answers with a lease.
func (c *call) granted(end func(), life time.Duration) error {
	l := c.newLease()
	l.end, l.life = end, life
	return c.told(l)
}

// told sends the name of a lease, and ends the lease if the client has gone.
func (c *call) told(l *lease) error {
	id, err := c.grant(l)
	if err != nil {
		return err
	}
	if err := errors.Join(c.out.result(result{Lease: id}), c.out.flush(), c.ctx.Err()); err != nil {
		c.release(id)
		return err
	}
	return nil
}

func (c *call) keepLease() error {
	_, err := c.renew(c.Lease)
	return err
}

func (c *call) releaseLease() error {
	c.release(c.Lease)
	return nil
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

func (c *call) remove() error   { return c.store.Remove(c.ctx, c.Name) }
func (c *call) removeAt() error { return c.store.RemoveAt(c.ctx, c.Name, c.At) }

func (c *call) trash() error {
	all, err := c.store.Trash().List(c.ctx)
	return errors.Join(c.trashed(all), err)
}

func (c *call) trashed(all []store.Trashed) error {
	for i := range all {
		if err := c.out.result(result{Trashed: &all[i]}); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) addToTrash() error { return c.store.Trash().Add(c.ctx, c.Name, c.lines) }

func (c *call) takeToTrash() error { return c.store.Trash().Take(c.ctx, c.Name, c.At) }

func (c *call) restore() error { return c.store.Trash().Restore(c.ctx, c.Name) }

func (c *call) empty() error {
	if c.Before == nil {
		return bad(malformed("before when?"))
	}
	gone, err := c.store.Trash().Empty(c.ctx, *c.Before)
	return errors.Join(c.trashed(gone), err)
}
