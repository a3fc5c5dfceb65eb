package tiktoken

import (
	"bytes"
	"embed"
	"fmt"
	"hash/maphash"
	"iter"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// A file has a byte with the length of every token, in the order of their ids, then a
// zero, then their text.
//
//go:embed *.zst
var files embed.FS

// vocabulary finds the ids of tokens. A token's id is also its rank: the lower, the
// earlier two neighbours are merged into it.
//
// The table is one of open addressing, at most half full: of the pairs that merging looks
// up, most are no token, and must find a gap soon. A map takes twice the memory.
type vocabulary struct {
	text   string   // all tokens, in the order of their ids
	starts []uint32 // where each token starts in text, and where the last one ends
	slots  []uint32 // the id of a token plus one, and some bits of its hash; or zero
	seed   maphash.Seed
	split  func(text string) int // the length of the first piece of a text
}

// idBits are the bits of a slot that hold an id; the others hold a part of the hash, which
// spares most comparisons with other tokens.
const idBits = 18

func read(name string, split func(string) int) (*vocabulary, error) {
	packed, err := files.ReadFile(name + ".zst")
	if err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	data, err := decoder.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	lengths, text, _ := bytes.Cut(data, []byte{0})
	v := &vocabulary{text: string(text), starts: make([]uint32, 1, len(lengths)+1), seed: maphash.MakeSeed(), split: split}
	size := 1
	for size < 2*len(lengths) {
		size *= 2
	}
	v.slots = make([]uint32, size)
	for id, length := range lengths {
		start := v.starts[id]
		v.starts = append(v.starts, start+uint32(length))
		v.add(uint32(id))
	}
	return v, nil
}

// slotOf returns where the search for a token starts, and the bits of the hash that its
// slot holds.
func (v *vocabulary) slotOf(token string) (at, tag uint32) {
	hash := maphash.String(v.seed, token)
	return uint32(hash) & uint32(len(v.slots)-1), uint32(hash>>32) &^ (1<<idBits - 1)
}

func (v *vocabulary) add(id uint32) {
	at, tag := v.slotOf(v.token(id))
	for v.slots[at] != 0 {
		at = (at + 1) & uint32(len(v.slots)-1)
	}
	v.slots[at] = tag | (id + 1)
}

// id returns the id of a token, and whether the text is one.
func (v *vocabulary) id(text string) (uint32, bool) {
	at, tag := v.slotOf(text)
	for v.slots[at] != 0 {
		if slot := v.slots[at] ^ tag; slot < 1<<idBits && v.token(slot-1) == text {
			return slot - 1, true
		}
		at = (at + 1) & uint32(len(v.slots)-1)
	}
	return 0, false
}

func (v *vocabulary) token(id uint32) string { return v.text[v.starts[id]:v.starts[id+1]] }

// ids returns the ids of the tokens of a text. Special tokens such as <|endoftext|> are
// text like any other. A byte that is not UTF-8 counts as the replacement character, as
// which JSON would send it to a model.
func (v *vocabulary) ids(text string) iter.Seq[uint32] {
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	return func(yield func(uint32) bool) {
		var m merger
		for rest := text; rest != ""; {
			piece := rest[:v.split(rest)]
			rest = rest[len(piece):]
			if id, ok := v.id(piece); ok {
				if !yield(id) {
					return
				}
				continue
			}
			m.merge(v, piece)
			for at := 0; at < len(piece); {
				end := int(m.parts[at].next)
				if id, _ := v.id(piece[at:end]); !yield(id) {
					return
				}
				at = end
			}
		}
	}
}
