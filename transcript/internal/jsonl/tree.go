package jsonl

// Tree finds the records that lines follow, where lines name the line before
// them and not every line becomes a record. Its zero value is ready to use.
type Tree struct {
	through map[string]string // from lines without a record to what they follow
}

// Pass says that no record was made of a line.
func (t *Tree) Pass(id, parent string) {
	if id == "" || id == parent {
		return
	}
	if t.through == nil {
		t.through = make(map[string]string)
	}
	t.through[id] = t.Resolve(parent)
}

// Resolve returns the record that a line follows which names a line as the one
// before it: that line, or the nearest one before it of which a record was made.
// It is "" where there is none.
func (t *Tree) Resolve(parent string) string {
	if before, ok := t.through[parent]; ok {
		return before
	}
	return parent
}
