//go:build unix

package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// A log with entries that are all different tells the order of its appends itself: they are in
// it. So nothing has to be searched for. With the log as it is in the end, everything that
// anybody saw of it must be a part of it, and in an order that agrees with the time: what had
// returned before something was called came before it.

// checkLists checks the histories of logs that were appended to and read. The last operation on
// each log must have read it all.
func checkLists(ops []op) error {
	byLog := make(map[string][]*op)
	for i := range ops {
		byLog[ops[i].Object] = append(byLog[ops[i].Object], &ops[i])
	}
	var all []error
	for name, ops := range byLog {
		l := listHistory{ops: ops}
		if err := l.check(); err != nil {
			all = append(all, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(all...)
}

type listHistory struct {
	ops     []*op
	final   []int64       // the entries, in the end
	place   map[int64]int // of an entry among them
	at      map[int64]int // how many entries there are before a position
	appends map[int64]*op // by entry
	called  []int64       // when the last of the first n entries was called for
}

func (l *listHistory) check() error {
	slices.SortFunc(l.ops, func(a, b *op) int { return cmp.Compare(a.Call, b.Call) })
	if err := l.settle(); err != nil {
		return err
	}
	for _, o := range l.ops {
		if err := l.one(o); err != nil {
			return fmt.Errorf("%w: %v", err, o)
		}
	}
	return l.checkTime()
}

// settle takes the last read for the truth.
func (l *listHistory) settle() error {
	last := l.ops[len(l.ops)-1]
	if last.Kind != kindRead || last.At != 0 || last.Result != ok {
		return fmt.Errorf("the history does not end with what the log is: %v", last)
	}
	l.final, l.place, l.at, l.appends = last.IDs, make(map[int64]int), make(map[int64]int), make(map[int64]*op)
	for _, o := range l.ops {
		if o.Kind == kindAppend {
			l.appends[o.ID] = o
		}
	}
	pos, called := int64(0), int64(0)
	l.at[0], l.called = 0, []int64{0}
	for i, id := range l.final {
		o := l.appends[id]
		if o == nil {
			return fmt.Errorf("entry %d is %d, which nobody has appended", i, id)
		}
		if before, twice := l.place[id]; twice {
			return fmt.Errorf("entry %d is there twice, as %d and as %d", id, before, i)
		}
		l.place[id] = i
		pos += int64(len(entry{ID: id}.line())) + 1
		l.at[pos] = i + 1
		called = max(called, o.Call)
		l.called = append(l.called, called)
	}
	if pos != last.End {
		return fmt.Errorf("it ends at %d, and its lines at %d", last.End, pos)
	}
	return nil
}

// one checks an operation against what the log is in the end.
func (l *listHistory) one(o *op) error {
	from, begins := l.at[o.At]
	to, ends := l.at[o.End]
	there, isThere := l.place[o.ID]
	switch {
	case o.refused() && o.Kind == kindAppend && isThere:
		return errors.New("an append that was refused has happened")
	case o.refused():
		return nil
	case !begins:
		return errors.New("begins where no line does")
	case o.Kind == kindAppend && o.Result == ok:
		switch {
		case !isThere:
			return errors.New("an acknowledged entry is lost")
		case there != from:
			return fmt.Errorf("the entry is number %d of the log", there)
		case !ends || to != from+1:
			return errors.New("the append gave a wrong end")
		case l.called[from] > o.Return:
			return errors.New("an append came after one that was called later than it returned")
		}
	case o.Kind == kindAppend && o.Result == conflict:
		switch {
		case isThere:
			return errors.New("an append that met a conflict has happened")
		case from == len(l.final), l.appends[l.final[from]].Call > o.Return:
			return errors.New("an append met a conflict, and nobody had appended there")
		}
	case o.Kind == kindAppend && o.Result == unknown:
		if isThere && there != from {
			return fmt.Errorf("the entry is number %d of the log", there)
		}
	case o.Result == ok: // a read
		switch {
		case !ends || to < from:
			return errors.New("ends where no line does")
		case !slices.Equal(o.IDs, l.final[from:to]):
			return fmt.Errorf("read other lines than %v", l.final[from:to])
		case l.called[to] > o.Return:
			return errors.New("read a line before anybody had called for it")
		}
	case o.Result != unknown:
		return errors.New("a result that an operation on a list cannot have")
	}
	return nil
}

// checkTime checks that everyone sees what was there before they asked: the end of a read or of
// an append is not before an end that anybody had heard of when it was called.
func (l *listHistory) checkTime() error {
	returned := make([]*op, 0, len(l.ops))
	for _, o := range l.ops {
		if o.Result == ok {
			returned = append(returned, o)
		}
	}
	slices.SortFunc(returned, func(a, b *op) int { return cmp.Compare(a.Return, b.Return) })
	known, by := int64(math.MinInt64), (*op)(nil)
	for _, o := range l.ops { // by the time of the call
		for len(returned) > 0 && returned[0].Return < o.Call {
			if returned[0].End > known {
				known, by = returned[0].End, returned[0]
			}
			returned = returned[1:]
		}
		isLate := o.Kind == kindRead && o.End < known || o.Kind == kindAppend && o.At < known
		if o.Result == ok && isLate {
			return fmt.Errorf("a stale answer: %v after %v", o, by)
		}
	}
	return nil
}
