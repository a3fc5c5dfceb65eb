package index

// docSeqBits is how many bits of a document's id tell it from others of the same
// second. The fewer they are, the smaller is the full-text table, which keeps the
// differences of ids.
const docSeqBits = 8

// docID returns the id that the n-th document should have.
func docID(ms, n int64) int64 {
	const last = 1<<40 - 1 // in 35,000 years
	return min(max(ms/1000, 0), last)<<docSeqBits | n&(1<<docSeqBits-1)
}

// maxFull is how many ranges of ids are remembered.
const maxFull = 64

// docPlaces remembers, for as long as a CatchUp lasts, which ids are taken one
// after the other. Without it, to find room for each of a hundred thousand
// documents of one second would mean to look at all that are there already.
type docPlaces struct{ full []span }

// after returns the first id, from one on, that may be free.
func (p *docPlaces) after(id int64) int64 {
	for _, s := range p.full {
		if s.has(id) {
			return s.last + 1
		}
	}
	return id
}

// fill notes that the ids from first to last are taken.
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

// insertDoc writes a document's row. If its id is taken, because there are very
// many of the same second, it gets the next that is free.
func (w *writer) insertDoc(d *docRow) error {
	wanted := d.id
	d.id = w.places.after(wanted)
	for {
		added, err := w.exec(`INSERT INTO docs (id, session, entry, part, kind, role, tool, model, carried, len, tf)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			d.id, d.session, d.entry, d.part, kindNumber(d.kind), d.role, d.tool, d.model, d.carried, d.length, d.tf)
		if err != nil {
			return err
		}
		if added > 0 {
			break
		}
		_, err = w.find([]any{&d.id}, `SELECT id + 1 FROM docs d WHERE id >= ?
			AND NOT EXISTS (SELECT 1 FROM docs n WHERE n.id = d.id + 1) ORDER BY id LIMIT 1`, d.id)
		if err != nil {
			return err
		}
	}
	if d.id != wanted {
		w.places.fill(wanted, d.id)
	}
	return nil
}
