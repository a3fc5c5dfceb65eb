package index

// maxTermTable is how many tokens are counted before the counts are written.
const maxTermTable = 100_000

// termTable counts in how many documents each token is, for as long as a CatchUp
// lasts: a token is written when it is first met, because a prefix must find it,
// but how frequent it is may wait, and is lost if the process ends before.
type termTable struct{ df map[string]int64 }

func newTermTable() *termTable { return &termTable{df: make(map[string]int64)} }

// addTerms counts documents by the tokens that they have.
func (w *writer) addTerms(df map[string]int64) error {
	for term, n := range df {
		before, known := w.terms.df[term]
		w.terms.df[term] = before + n
		if known {
			continue
		}
		if _, err := w.exec(`INSERT INTO terms (term, df, stem) VALUES (?, 0, ?) ON CONFLICT DO NOTHING`, term, stemOf(term)); err != nil {
			return err
		}
	}
	return nil
}

// flushTerms writes the counts.
func (w *writer) flushTerms() error {
	for term, df := range w.terms.df {
		if _, err := w.exec(`UPDATE terms SET df = df + ? WHERE term = ?`, df, term); err != nil {
			return err
		}
	}
	clear(w.terms.df)
	return nil
}
