package claudecode

import "testing"

// TestThreadKeepsIDs: ids are kept in little room, and come back as they were.
func TestThreadKeepsIDs(t *testing.T) {
	t.Parallel()
	ids := []string{
		"6b1b2f6f-4d57-4a54-9be1-3f6b1b2f6f10", "6B1B2F6F-4D57-4A54-9BE1-3F6B1B2F6F10", "msg_1", "",
		"6b1b2f6f-4d57-4a54-9be1-3f6b1b2f6f1g", "00000000-0000-0000-0000-000000000000", "6b1b2f6f4d574a549be13f6b1b2f6f10",
		"6b1b2f6f-4d57-4a54-9be1-3f6b1b2f6f10:call",
	}
	var th thread
	for n, id := range ids {
		th.add(id, node{branch: int32(n)})
		for at, want := range ids[:n+1] {
			if got := th.id(int32(at)); got != want || th.nodes[at].branch != int32(at) {
				t.Errorf("of %d, id %d is %q, want %q", n+1, at, got, want)
			}
		}
	}
	if len(th.odd) != len(ids)-2 {
		t.Errorf("%d ids are kept as text", len(th.odd))
	}
}
