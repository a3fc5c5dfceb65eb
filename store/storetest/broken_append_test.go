package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/store"
)

func breakAppend(change func(store.Log) appendFunc) func(*parts) {
	return eachLog(func(l *hooked) { l.append = change(l.Log) })
}

func doubles(log store.Log) appendFunc {
	return func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
		return log.Append(ctx, at, slices.Concat(lines, lines)...)
	}
}

func wrongEnd(log store.Log) appendFunc {
	return func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
		_, err := log.Append(ctx, at, lines...)
		return at, err
	}
}

func anywhere(log store.Log) appendFunc {
	return func(ctx context.Context, _ store.Pos, lines ...[]byte) (store.Pos, error) {
		end, err := log.End(ctx)
		if err != nil {
			return 0, err
		}
		return log.Append(ctx, end, lines...)
	}
}

func nothingUnchecked(log store.Log) appendFunc {
	return func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
		if len(lines) == 0 {
			return at, nil
		}
		return log.Append(ctx, at, lines...)
	}
}

func splits(log store.Log) appendFunc {
	return func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
		return log.Append(ctx, at, bytes.Split(bytes.Join(lines, []byte("\n")), []byte("\n"))...)
	}
}

func writesTheGood(log store.Log) appendFunc {
	return func(ctx context.Context, at store.Pos, lines ...[]byte) (end store.Pos, err error) {
		for _, line := range lines {
			if at, err = log.Append(ctx, at, line); err != nil {
				return 0, err
			}
		}
		return at, nil
	}
}

func hidesCause(log store.Log) appendFunc {
	return func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
		end, err := log.Append(ctx, at, lines...)
		if errors.Is(err, store.ErrTooLarge) {
			err = &store.Error{Op: "append", Name: "a", Kind: store.ErrInvalid}
		}
		return end, err
	}
}

func regardless(log store.Log) appendFunc {
	return func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
		return log.Append(context.WithoutCancel(ctx), at, lines...)
	}
}

func edits(edit func([]byte) []byte) func(store.Log) appendFunc {
	return func(log store.Log) appendFunc {
		return func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
			edited := make([][]byte, len(lines))
			for i, line := range lines {
				edited[i] = edit(line)
			}
			return log.Append(ctx, at, edited...)
		}
	}
}

func dropsEmpty(log store.Log) appendFunc {
	return func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
		full := slices.DeleteFunc(slices.Clone(lines), func(line []byte) bool { return len(line) == 0 })
		return log.Append(ctx, at, full...)
	}
}

// checkThenAct leaves a gap between looking at the end and writing there.
func checkThenAct(log store.Log) appendFunc {
	return func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
		if end, err := log.End(ctx); err != nil || end != at {
			return log.Append(ctx, at, lines...)
		}
		time.Sleep(time.Millisecond)
		return insist(ctx, log, lines...)
	}
}

// tears lets others write between the lines of one append.
func tears(log store.Log) appendFunc {
	return func(ctx context.Context, at store.Pos, lines ...[]byte) (end store.Pos, err error) {
		for i, line := range lines {
			if i == 0 {
				end, err = log.Append(ctx, at, line)
			} else {
				time.Sleep(time.Millisecond)
				end, err = insist(ctx, log, line)
			}
			if err != nil {
				return 0, err
			}
		}
		return end, nil
	}
}

func insist(ctx context.Context, log store.Log, lines ...[]byte) (store.Pos, error) {
	for {
		end, err := log.End(ctx)
		if err != nil {
			return 0, err
		}
		end, err = log.Append(ctx, end, lines...)
		if !errors.Is(err, store.ErrConflict) {
			return end, err
		}
		runtime.Gosched()
	}
}

// flushAppends writes a mark into the log.
func flushAppends(log store.Log) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := log.Flush(ctx); err != nil {
			return err
		}
		_, err := insist(ctx, log, []byte("flushed"))
		return err
	}
}

// flushOnce never gives back what it locks.
func flushOnce(log store.Log) func(context.Context) error {
	var mu sync.Mutex
	return func(ctx context.Context) error {
		mu.Lock()
		return log.Flush(ctx)
	}
}
