package index

import (
	"encoding/binary"
	"errors"
)

// One column repeats everything that a list shows of a session, because fetching columns is
// the slowest part of a list: with a column for each member, a page of 50 sessions took four
// times as long.
//
// Numbers are varints, strings and lists have their length before them, and
// the members come in the order of encodeRow.

// encodeRow returns the session's row as a list shows it.
func (s *state) encodeRow() []byte {
	var b rowBuffer
	for _, text := range []string{s.sid, s.name, s.key, s.title, s.cwd, s.parent, s.relation, s.continuedTo, s.leafID, s.agent} {
		b.text(text)
	}
	for _, n := range []int64{
		s.created, s.updated, s.entries, s.messages, s.branches, s.tokens, s.context, s.size, s.continuation, s.problems,
	} {
		b.number(n)
	}
	for _, is := range []bool{s.given != "", s.pinned, s.archived, s.billed > 0} {
		b.flag(is)
	}
	b.number(int64(len(s.tags)))
	for _, tag := range s.tags {
		b.text(tag)
	}
	b.counts(sortCounts(s.models))
	b.counts(sortCounts(s.tools))
	b.number(s.links)
	b.number(int64(len(s.missing)))
	for _, id := range s.missing {
		b.text(id)
	}
	return b
}

// decodeRow is the reverse of encodeRow.
func decodeRow(row []byte) (Session, error) {
	r := rowReader{data: string(row)} // the session's strings are parts of it
	var s Session
	for _, text := range []*string{&s.ID, &s.Name, &s.Key, &s.Title, &s.CWD, &s.Parent, &s.Relation, &s.ContinuedTo, &s.Leaf, &s.Agent} {
		*text = r.text()
	}
	s.Project = ProjectOf(s.CWD)
	s.Created, s.Updated = timeOf(r.number()), timeOf(r.number())
	s.Entries, s.Messages, s.Branches = int(r.number()), int(r.number()), int(r.number())
	s.Tokens, s.Context, s.Size = r.number(), r.number(), r.number()
	s.Continuation, s.Problems = int(r.number()), int(r.number())
	s.Named, s.Pinned, s.Archived, s.Reported = r.flag(), r.flag(), r.flag(), r.flag()
	for n := r.length(1); n > 0; n-- {
		s.Tags = append(s.Tags, r.text())
	}
	s.Models, s.Tools = r.counts(), r.counts()
	s.Links = int(r.number())
	for n := r.length(1); n > 0; n-- {
		s.Missing = append(s.Missing, r.text())
	}
	if r.short || r.data != "" {
		return Session{}, errRow
	}
	return s, nil
}

var errRow = errors.New("a session's row cannot be decoded")

// rowBuffer is a row that is being written.
type rowBuffer []byte

func (b *rowBuffer) number(n int64) { *b = binary.AppendVarint(*b, n) }

func (b *rowBuffer) text(s string) {
	b.number(int64(len(s)))
	*b = append(*b, s...)
}

func (b *rowBuffer) flag(is bool) {
	n := int64(0)
	if is {
		n = 1
	}
	b.number(n)
}

func (b *rowBuffer) counts(counts []Count) {
	b.number(int64(len(counts)))
	for _, c := range counts {
		b.text(c.Name)
		b.number(c.Count)
	}
}

// rowReader reads a row. After its end everything is zero, and short is true.
type rowReader struct {
	data  string
	short bool
}

func (r *rowReader) number() int64 {
	var u uint64
	for i := 0; i < len(r.data) && i < binary.MaxVarintLen64; i++ {
		c := r.data[i]
		u |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.data = r.data[i+1:]
			return int64(u>>1) ^ -int64(u&1)
		}
	}
	r.data, r.short = "", true
	return 0
}

// length reads how many things follow, each of which takes at least size bytes.
func (r *rowReader) length(size int) int {
	n := r.number()
	if n < 0 || n > int64(len(r.data)/size) {
		r.data, r.short = "", true
		return 0
	}
	return int(n)
}

func (r *rowReader) text() string {
	n := r.length(1)
	s := r.data[:n]
	r.data = r.data[n:]
	return s
}

func (r *rowReader) flag() bool { return r.number() != 0 }

func (r *rowReader) counts() []Count {
	n := r.length(2)
	if n == 0 {
		return nil
	}
	counts := make([]Count, n)
	for i := range counts {
		counts[i] = Count{r.text(), r.number()}
	}
	return counts
}
