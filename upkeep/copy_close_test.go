package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/upkeep"
)

// counted is a store that counts its open logs, and calls opened for each.
type counted struct {
	store.Store
	open   atomic.Int32
	opened func(open int32)
}

func (s *counted) Open(ctx context.Context, name string) (store.Log, error) {
	log, err := s.Store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	s.opened(s.open.Add(1))
	return &countedLog{log, s}, nil
}

type countedLog struct {
	store.Log
	of *counted
}

func (l *countedLog) Close() error {
	l.of.open.Add(-1)
	return l.Log.Close()
}

// New logs wait to be created together. Each is open meanwhile, and none may stay open if the
// copy ends before that.
func TestCopyThatEndsEarlyClosesItsLogs(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	from := &counted{Store: inMemory(t), opened: func(open int32) {
		if open >= 50 {
			cancel()
		}
	}}
	for i := range 300 {
		write(t, from, fmt.Sprintf("s%03d", i), message("1", "null", "user", hello, ""))
	}
	if _, err := upkeep.Copy(ctx, from, inMemory(t), upkeep.CopyRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("copied: %v", err)
	}
	if open := from.open.Load(); open != 0 {
		t.Errorf("%d logs are still open", open)
	}
}
