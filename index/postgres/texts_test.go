package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/index/room"
)

func TestTSQuery(t *testing.T) {
	for match, want := range map[string]string{
		`"a"`:                            `('a')`,
		`("a" OR "b") AND "c"`:           `(('a')|('b'))&('c')`,
		`("a" NOT ("b" OR "_k1"))`:       `(('a')&!(('b')|('_k1')))`,
		`body : "a b c" OR "abc"`:        `('a'<->'b'<->'c')|('abc')`,
		`"it's" AND "a\b"`:               `('it''s')&('a\\b')`,
		"\"a\x00\" OR \"\xff\" OR \"🚀\"": `('a�')|('�')|('🚀')`,
	} {
		if got := tsquery(match); got != want {
			t.Errorf("%s\n got %s\nwant %s", match, got, want)
		}
	}
}

func TestVectors(t *testing.T) {
	words := []string{"a", "it's", `b\`, "_k1", "\x00", strings.Repeat("x", maxLexeme+1)}
	many := make([]uint32, maxPlace+10)
	for i := range many {
		many[i] = 1
	}
	many[0], many[maxPlace-1], many[maxPlace] = 0, 0, 2
	places := make([]string, maxPlaces)
	for i := range places {
		places[i] = fmt.Sprint(i + 2)
	}
	const era = `'_@@t' '_@2@t'`
	for _, c := range []struct {
		text room.Text
		want string
	}{
		{room.Text{Body: []uint32{0, 1, 0}, Whole: []uint32{2}, Facets: []uint32{3}}, era + ` '_k1' 'b\\' 'it''s':2 'a':1,3`},
		{room.Text{Body: []uint32{0, 5, 2}, Whole: []uint32{0}}, era + ` 'b\\':3 'a':1`},
		{room.Text{Body: []uint32{4}}, era + ` '�':1`},
		// After so many words there are no places, and of each word only so many.
		{room.Text{Body: many}, era + ` 'b\\' 'it''s':` + strings.Join(places, ",") + ` 'a':1,16383`},
	} {
		c.text.ID = 2 << eraShift
		if got := newVectors(words, "t").vector(c.text); got != c.want {
			t.Errorf("%v\n got %.200s\nwant %.200s", c.text, got, c.want)
		}
	}
	v := newVectors(words, "t")
	v.maximum = 25
	if got := v.vector(room.Text{Body: []uint32{0, 0, 0, 1, 2}, Facets: []uint32{3}}); got != `'_@@t' '_@0@t' '_k1' 'b\\'` {
		t.Errorf("a text that is too long: %s", got)
	}
}
