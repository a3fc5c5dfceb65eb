package index

import "strconv"

// docSeqBits is how many bits of a document's id distinguish it from others of the same
// second. The fewer there are, the smaller the full-text table, which stores differences of
// ids.
const docSeqBits = 8

// docID returns the id that the n-th document should have.
func docID(ms, n int64) int64 {
	const last = 1<<40 - 1 // in 35,000 years
	return min(max(ms/1000, 0), last)<<docSeqBits | n&(1<<docSeqBits-1)
}

// maxFull is how many ranges of ids are remembered.
const maxFull = 64

// docPlaces remembers, for as long as a CatchUp lasts, which ids are taken one after the
// other. Without it, finding a free id for each of a hundred thousand documents of one second
// would mean looking at all existing ones each time.
type docPlaces struct{ full []span }

// after returns the first id, at or after the given one, that may be free.
func (p *docPlaces) after(id int64) int64 {
	for _, s := range p.full {
		if s.has(id) {
			return s.last + 1
		}
	}
	return id
}

// fill records that the ids from first to last are taken.
func (p *docPlaces) fill(first, last int64) {
	for i := range p.full {
		if s := &p.full[i]; s.has(first) || first == s.last+1 {
			s.last = max(s.last, last)
			return
		}
	}
	if len(p.full) == maxFull {
		p.full = append(p.full[:0], p.full[1:]...)
	}
	p.full = append(p.full, span{first, last})
}

// assignIDs gives each document an id of its own, and reports whether any had to change.
// The documents must be sorted by their ids.
//
// Nearly always no id is taken: then the rows can wait, and the segment can be made while
// they are written. If one is taken, all rows are written here, because only the table itself
// knows which ids are free. The documents that move come last: otherwise one of them could
// get the id that the next document has.
func (w *writer) assignIDs(docs []docRow) (moved bool, err error) {
	taken, err := w.takenDocs(docs)
	if err != nil {
		return false, err
	}
	isLate := func(i int) bool {
		id := docs[i].id
		return taken[id] || i > 0 && docs[i-1].id == id || w.places.after(id) != id
	}
	var late []int
	for i := range docs {
		if isLate(i) {
			late = append(late, i)
		}
	}
	if len(late) == 0 {
		return false, nil
	}
	next := late
	for i := range docs {
		docs[i].written = true
		if len(next) > 0 && next[0] == i {
			next = next[1:]
			continue
		}
		if err := w.add(w.docRows, docs[i].values()...); err != nil {
			return false, err
		}
	}
	for _, i := range late {
		if err := w.insertLate(&docs[i]); err != nil {
			return false, err
		}
	}
	return true, nil
}

// takenDocs returns which of the documents' ids are taken. If all are newer than the existing
// ones, as in most logs that grow, one look is enough.
func (w *writer) takenDocs(docs []docRow) (map[int64]bool, error) {
	if len(docs) == 0 || w.newest < docs[0].id {
		return nil, nil
	}
	ids := []byte{'['}
	for i := range docs {
		ids = append(strconv.AppendInt(ids, docs[i].id, 10), ',')
	}
	ids[len(ids)-1] = ']'
	// One look for each id, for the same reason as in freeDoc.
	rows, err := w.QueryContext(w.ctx, `SELECT d.id FROM json_each(?) j CROSS JOIN docs d ON d.id = j.value`, string(ids))
	if err != nil {
		return nil, err
	}
	list, err := scanColumn[int64](rows)
	taken := make(map[int64]bool, len(list))
	for _, id := range list {
		taken[id] = true
	}
	return taken, err
}

const docColumns = `id, session, entry, part, kind, role, tool, model, elsewhere, len, tf, late, failed`

func (d *docRow) values() []any {
	return []any{d.id, d.session, d.entry, int64(d.part), kindNumber(d.kind), d.role, d.tool, d.model, d.elsewhere, int64(d.length), d.tf, d.late, d.failed}
}

// insertLate writes the row of a document whose id is, or may be, taken by one of very many
// of the same second. It gets the next free id, which may belong to a later second: its row says so.
func (w *writer) insertLate(d *docRow) error {
	wanted := d.id
	d.id = w.places.after(wanted)
	for {
		d.late = d.id>>docSeqBits - wanted>>docSeqBits
		added, err := w.count(`INSERT INTO docs (`+docColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`, d.values()...)
		if err != nil {
			return err
		}
		if added > 0 {
			break
		}
		if d.id, err = w.freeDoc(d.id + 1); err != nil {
			return err
		}
	}
	if d.id != wanted {
		w.places.fill(wanted, d.id)
	}
	return nil
}

// takenAtOnce is how many ids are read at a time to find one that is free. It is nearly always among
// the next few.
const takenAtOnce = 64

// freeDoc returns the first id, from one on, that is free. It reads the ids in their order, which
// costs the same whatever a database knows of the table: PostgreSQL expects no rows of a new tenant,
// and to find a gap by comparing the table with itself it would read all of them each time.
func (w *writer) freeDoc(id int64) (int64, error) {
	for {
		rows, err := w.QueryContext(w.ctx, `SELECT id FROM docs WHERE id >= ? ORDER BY id LIMIT ?`, id, takenAtOnce)
		if err != nil {
			return 0, err
		}
		taken, err := scanColumn[int64](rows)
		if err != nil {
			return 0, err
		}
		for _, next := range taken {
			if next != id {
				return id, nil
			}
			id++
		}
		if len(taken) < takenAtOnce {
			return id, nil
		}
	}
}
