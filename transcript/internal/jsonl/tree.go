package jsonl

// Tree finds the records that lines follow, where lines name the line before
// them and not every line becomes a record. Its zero value is ready to use.
type Tree struct {
	through map[string]string // from lines without a record to what they follow
}

// Pass says that a line became no record.
func (t *Tree) Pass(id, parent string) {
	if id == "" || id == parent {
		return
	}
	if t.through == nil {
		t.through = make(map[string]string)
	}
	t.through[id] = t.Resolve(parent)
}

// Resolve returns the record to follow for a line that names parent as the line before it:
// parent itself, or the nearest line above it that became a record. It is "" if there is
// none.
func (t *Tree) Resolve(parent string) string {
	if before, ok := t.through[parent]; ok {
		return before
	}
	return parent
}
