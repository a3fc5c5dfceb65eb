package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/store"
)

// byPosition yields what is there at the beginning, in the order of the log.
func byPosition(read readFunc) readFunc {
	return func(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
		return func(yield func(store.Line, error) bool) {
			var lines []store.Line
			for line, err := range read(ctx, from) {
				if err != nil {
					yield(store.Line{}, err)
					return
				}
				line.Data = bytes.Clone(line.Data)
				lines = append(lines, line)
			}
			slices.SortFunc(lines, func(a, b store.Line) int { return int(a.Pos - b.Pos) })
			for _, line := range lines {
				if !yield(line, nil) {
					return
				}
			}
		}
	}
}

// alwaysFromEnd reads backward from the end, wherever it was asked to begin.
func alwaysFromEnd(log store.Log) readFunc {
	return func(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
		if end, err := log.End(ctx); err == nil && from > 0 {
			from = end
		}
		return log.Backward(ctx, from)
	}
}

func clamped(read readFunc) readFunc {
	return func(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
		return read(ctx, max(from, 0))
	}
}

// sharing gives the same bytes to everyone who reads a line.
func sharing(read readFunc) readFunc {
	kept := map[store.Pos][]byte{}
	return func(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
		return func(yield func(store.Line, error) bool) {
			for line, err := range read(ctx, from) {
				if kept[line.Pos] == nil {
					kept[line.Pos] = bytes.Clone(line.Data)
				}
				line.Data = kept[line.Pos]
				if !yield(line, err) {
					return
				}
			}
		}
	}
}

// silent takes every error for the end.
func silent(read readFunc) readFunc {
	return func(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
		return func(yield func(store.Line, error) bool) {
			for line, err := range read(ctx, from) {
				if err != nil || !yield(line, nil) {
					return
				}
			}
		}
	}
}

// loud reports the end of ctx as an error.
func loud(read readFunc) readFunc {
	return func(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
		return func(yield func(store.Line, error) bool) {
			for line, err := range read(ctx, from) {
				if !yield(line, err) {
					return
				}
			}
			yield(store.Line{}, ctx.Err())
		}
	}
}

// sleeping is a Watch that never looks again.
func sleeping(log store.Log) readFunc {
	return func(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
		return func(yield func(store.Line, error) bool) {
			for line, err := range log.Forward(ctx, from) {
				if !yield(line, err) {
					return
				}
			}
			<-ctx.Done()
		}
	}
}

// following is a Watch that goes over to a new log of the same name.
func following(p *parts) {
	p.wrapLog = func(name string, log store.Log) store.Log {
		l := hook(log)
		l.watch = func(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
			return func(yield func(store.Line, error) bool) {
				current := log
				for ctx.Err() == nil {
					for line, err := range current.Watch(ctx, from) {
						if errors.Is(err, store.ErrNotExist) {
							break
						}
						if !yield(line, err) {
							return
						}
						from = line.Next
					}
					if again, err := p.Store.Open(ctx, name); err == nil {
						current = again
					}
				}
			}
		}
		return l
	}
}

// locked holds a lock while the caller looks at a line.
func locked(mu *sync.Mutex, read readFunc) readFunc {
	return func(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
		return func(yield func(store.Line, error) bool) {
			mu.Lock()
			defer mu.Unlock()
			read(ctx, from)(yield)
		}
	}
}

func breakReadLocks(p *parts) {
	var mu sync.Mutex
	eachLog(func(l *hooked) {
		l.forward = locked(&mu, l.Log.Forward)
		l.append = func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
			mu.Lock()
			defer mu.Unlock()
			return l.Log.Append(ctx, at, lines...)
		}
	})(p)
}

// inOrderOnly makes commit wait for the commits of all earlier appends.
func inOrderOnly(l *starting) {
	right, earlier := l.start, make(chan struct{})
	close(earlier)
	l.start = func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
		end, commit, err := right(ctx, at, lines...)
		if err != nil {
			return 0, nil, err
		}
		mine, before := make(chan struct{}), earlier
		earlier = mine
		return end, func() error {
			<-before
			close(mine)
			return commit()
		}, nil
	}
}

func startsAnywhere(l *starting) {
	l.start = func(ctx context.Context, _ store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
		end, err := insist(ctx, l.Log, lines...)
		return end, func() error { return nil }, err
	}
}

func startsRegardless(l *starting) {
	right := l.start
	l.start = func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
		return right(context.WithoutCancel(ctx), at, lines...)
	}
}

// losesStarted promises and does not write.
func losesStarted(l *starting) {
	l.start = func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
		end := at + 1
		for _, line := range lines {
			end += store.Pos(len(line))
		}
		return end, func() error { return nil }, nil
	}
}

func dropEmpty(put putFunc) putFunc {
	return func(ctx context.Context, data []byte) (store.Ref, error) {
		if len(data) == 0 {
			return store.RefOf(data), nil
		}
		return put(ctx, data)
	}
}

func anyRef(get getFunc) getFunc {
	return func(ctx context.Context, ref store.Ref) ([]byte, error) {
		data, err := get(ctx, ref)
		if errors.Is(err, store.ErrInvalid) {
			err = &store.Error{Op: "get blob", Kind: store.ErrNotExist}
		}
		return data, err
	}
}

// cached gives the same bytes to everyone who gets a blob.
func cached(get getFunc) getFunc {
	kept := map[store.Ref][]byte{}
	return func(ctx context.Context, ref store.Ref) ([]byte, error) {
		if data, ok := kept[ref]; ok {
			return data, nil
		}
		data, err := get(ctx, ref)
		kept[ref] = data
		return data, err
	}
}

// twice yields everything, and then everything again.
func twice[V any](all func(context.Context) iter.Seq2[V, error]) func(context.Context) iter.Seq2[V, error] {
	return func(ctx context.Context) iter.Seq2[V, error] {
		return func(yield func(V, error) bool) {
			for range 2 {
				for v, err := range all(ctx) {
					if !yield(v, err) {
						return
					}
				}
			}
		}
	}
}
