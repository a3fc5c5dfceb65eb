package coppice_test

import (
	"testing"

	"github.com/coppice-dev/coppice"
)

// Without a limit everything is on the first page. A second one must not be
// everything once more: whoever turns pages would never come to the end.
func TestListWithoutALimitHasOnePage(t *testing.T) {
	h, dir := keptHome(t)
	keep(t, dir, "one", 1, "hello")
	if list, err := h.Sessions.List(t.Context(), coppice.ListRequest{Limit: -1, Page: 1}); err != nil || len(list.Sessions) != 1 {
		t.Errorf("page 1: %+v, %v", list, err)
	}
	if list, err := h.Sessions.List(t.Context(), coppice.ListRequest{Limit: -1, Page: 2}); coppice.KindOf(err) != coppice.KindInvalid {
		t.Errorf("page 2: %+v, %v", list, err)
	}
}
