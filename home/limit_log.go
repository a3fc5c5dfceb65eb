package home

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// viewLog is a log of a view. It stops working when the session is no longer inside.
type viewLog struct {
	store.Log
	view *view
	name string
}

// Append implements store.Log.
func (l *viewLog) Append(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
	if err := l.mayWrite(ctx, lines); err != nil {
		return 0, err
	}
	return l.Log.Append(ctx, at, lines...)
}

// Start implements store.Log.
func (l *viewLog) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	if err := l.mayWrite(ctx, lines); err != nil {
		return 0, nil, err
	}
	return l.Log.Start(ctx, at, lines...)
}

// mayWrite refuses lines that would take the session out of the limit, or bring in something
// from outside.
func (l *viewLog) mayWrite(ctx context.Context, lines [][]byte) error {
	if err := l.view.checkStill(ctx, "append", l.name); err != nil {
		return err
	}
	for _, line := range lines {
		if err := l.view.limit.mayTag(line); err != nil {
			return err
		}
		if err := l.view.blobs.named(ctx, l.name, line); err != nil {
			return err
		}
	}
	return nil
}

// mayTag refuses a line that removes the tag of the limit.
func (l Limit) mayTag(line []byte) error {
	if l.Tag == "" || !bytes.Contains(line, []byte(session.CustomTags)) {
		return nil
	}
	var e session.Entry
	if e.UnmarshalJSON(line) != nil || e.Custom == nil || e.Custom.CustomType != session.CustomTags {
		return nil
	}
	tags := func(field string) (inside []string, given bool) {
		list, given := e.Custom.Data[field].([]any)
		for _, tag := range list {
			if text, ok := tag.(string); ok && l.hasTag(text) {
				inside = append(inside, text)
			}
		}
		return inside, given
	}
	all, replaces := tags("tags")
	removed, _ := tags("remove")
	added, _ := tags("add")
	added = slices.DeleteFunc(added, func(tag string) bool { return slices.Contains(removed, tag) })
	if (!replaces || len(all) > 0) && (len(removed) == 0 || len(added) > 0) {
		return nil
	}
	return session.Invalidf("the tag %s cannot be removed in a home that is limited to it", l.Tag)
}

// Forward implements store.Log.
func (l *viewLog) Forward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return l.lines(ctx, l.Log.Forward(ctx, from), false)
}

// Backward implements store.Log.
func (l *viewLog) Backward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return l.lines(ctx, l.Log.Backward(ctx, from), false)
}

// Watch implements store.Log.
func (l *viewLog) Watch(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return l.lines(ctx, l.Log.Watch(ctx, from), true)
}

// lines yields lines as long as the session is inside. It checks at the beginning or, for a
// watch, before each line.
func (l *viewLog) lines(ctx context.Context, lines iter.Seq2[store.Line, error], always bool) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		if err := l.view.checkStill(ctx, "read", l.name); err != nil {
			yield(store.Line{}, err)
			return
		}
		for line, err := range lines {
			if err == nil && always {
				err = l.view.checkStill(ctx, "read", l.name)
			}
			if err != nil {
				yield(store.Line{}, err)
				return
			}
			l.view.blobs.note(l.name, line.Data)
			if !yield(line, nil) {
				return
			}
		}
	}
}
