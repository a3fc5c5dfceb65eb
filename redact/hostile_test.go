package redact_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/redact"
)

// fillers are what hostile texts have after an anchor: bytes of each alphabet that
// a rule may go over, with and without what makes them look random, and what ends
// or quotes values.
var fillers = map[string]string{
	"nothing": "", "letters": "qzQZ", "digits": "4719", "hex": "a7e1", "random": "k3Jx9Qw7Zt2Vb8Nm4Rc6Ys1Ld5Hf0Pg", "base64": "k3+/", "dash": "-", "underscore": "_", "dot": ".",
	"colon": ":", "equals": "=", "slash": "/", "at": "a:b1@", "percent": "%3D", "ampersand": "&", "space": " ", "line": "\n", "quote": `"`, "other quotes": "'`", "escaped quote": `\"`,
	"backslash": `\`, "bracket": "[", "mark": "[REDACTED:", "whole mark": "[REDACTED:password]", "stand-in": "your", "key": "-----BEGIN PRIVATE KEY-----", "token": "token=", "sequence": "abcdefgh",
}

// hostile makes texts of about a size that are there to keep the scanner busy. They
// are made from the rules, so that a new rule has its own.
func hostile(size int) map[string]string {
	all := make(map[string]string)
	fill := func(name, piece, end string) {
		all[name] = strings.Repeat(piece, size/len(piece)+1) + end
	}
	random := fillers["random"]
	for _, anchors := range redact.Anchors() {
		for name, filler := range fillers {
			fill(fmt.Sprintf("%q and %s", anchors[0], name), anchors[0]+filler, "")
		}
	}
	for _, anchor := range slices.Concat(redact.Anchors()...) {
		// One run of many anchors that is a secret as a whole, runs of the length
		// that values may have, and a long run after few anchors.
		fill(fmt.Sprintf("%q before a secret", anchor), anchor, random)
		fill(fmt.Sprintf("-%q before a secret", anchor), "-"+anchor, random)
		fill(fmt.Sprintf("runs of %q", anchor), strings.Repeat(anchor, 4000/len(anchor))+random+" ", "")
		fill(fmt.Sprintf("short runs of %q", anchor), strings.Repeat(anchor, 100/len(anchor)+1)+random+" ", "")
		all[fmt.Sprintf("%q and one run", anchor)] = anchor + strings.Repeat(random, size/len(random))
		all[fmt.Sprintf("one run and %q", anchor)] = strings.Repeat(random, size/len(random)) + anchor + random
	}
	head := b64(`{"a":{"a":{"a":{"a":`)
	fill("passwords that go on", "passwd:a;", random)
	fill("passwords that may go on", "passwd:a&b;c&D.", "")
	fill("heads of tokens", "eyJhbGciOiJIUzI1NiJ9.", random)
	fill("nested heads of tokens", "-"+head, b64(`1}`)+"."+jwt())
	fill("heads inside a head", "-eyJhbGciOiJ4In0", "."+jwt())
	fill("whole tokens", jwt()+".", "")
	slashes := ""
	for i := range 80 {
		slashes += "token=" + strings.Repeat(`\`, i) + `"`
	}
	fill("ever more backslashes", slashes+strings.Repeat(random, 20)+`"`, "")
	fill("ever fewer quotes", `token="token='token=`+"`token=", "")
	fill("an unclosed quote", `token="`+strings.Repeat("x", 5000), "")
	fill("names of names", strings.Repeat("token_", 20)+"="+random+" ", "")
	fill("a long name", "token_", "="+random)
	fill("a type", "token: "+strings.Repeat("a.", 2000)+"= ", "")
	fill("brackets", "[[{{", "")
	for _, kind := range slices.Sorted(maps.Keys(samples())) {
		for i, s := range samples()[kind] {
			s = strings.NewReplacer("«", "", "»", "").Replace(s)
			fill(fmt.Sprintf("%s %d", kind, i), s, "")
			fill(fmt.Sprintf("%s %d apart", kind, i), s+" password=kX9#mQ2$vL\n", "")
		}
	}
	return all
}

// stride is how many hostile texts one is tried of.
var stride = 1

// some returns every stride-th text.
func some(texts map[string]string) map[string]string {
	for i, name := range slices.Sorted(maps.Keys(texts)) {
		if i%stride > 0 {
			delete(texts, name)
		}
	}
	return texts
}

// hostileJSON makes values that are there to keep the scanner busy.
func hostileJSON(size int) map[string]string {
	gh := "ghp_" + random(alnum, 36)
	list := func(piece string, n int) string {
		return "[" + strings.Repeat(piece+",", n/(len(piece)+1)) + piece + "]"
	}
	quoted := func(text string) string {
		data, _ := json.Marshal(text)
		return string(data)
	}
	nested := `{"password":"kX9#mQ2$vL"}`
	for len(nested) < size/2 {
		nested = `{"in":` + quoted(nested+nested) + `}`
	}
	deep := min(5000, size/4)
	return map[string]string{
		"many findings in a string": quoted(strings.Repeat(gh+"\n", size/50)),
		"many strings":              list(quoted(gh), size),
		"below a long name":         `{"` + strings.Repeat("n", size/2) + `":` + list(quoted(gh), size/2) + `}`,
		"below a secret name":       `{"` + strings.Repeat("xoxb-", size/20) + gh + `":` + list(quoted(gh), size/2) + `}`,
		"below many levels":         strings.Repeat("[", deep) + list(quoted(gh), size/2) + strings.Repeat("]", deep),
		"many names":                `{"a":1` + strings.Repeat(`,"`+gh+`":{"password":"kX9#mQ2$vL"}`, size/80) + `}`,
		"JSON in JSON":              nested,
		"escapes":                   quoted(strings.Repeat("\x01\"\\", size/10)),
		"escaped backslashes":       `"` + strings.Repeat(`\\`, size/2) + `"`,
		"half of it":                list(quoted(gh), size) + "}",
	}
}

// manyKnown are secrets that begin alike, contain one another and repeat
// themselves, of about a size in all.
func manyKnown(size int) []redact.Known {
	var known []redact.Known
	for i := 0; size > 0; i++ {
		for _, value := range []string{
			fmt.Sprintf("ghp_%030d", i), strings.Repeat("a", 8+i%200), strings.Repeat("ab", 4+i%100) + "c", "c" + strings.Repeat("ab", 4+i%100),
		} {
			known = append(known, redact.Known{Kind: "password", Value: value})
			size -= len(value)
		}
	}
	return known
}

// maxWork is how many bytes rules may look at for each byte of a text. Values in
// quotes with ever more backslashes need most of it.
const maxWork = 100

// No text makes work that grows faster than it does. Work is what rules look at
// after their anchors. If a rule went on to the end of the text after each anchor,
// that would be far more than maxWork.
func TestWorkIsLinear(t *testing.T) {
	t.Parallel()
	for name, text := range some(hostile(8 << 10)) {
		if work := redact.Work(text) / len(text); work > maxWork {
			t.Errorf("%s: %d bytes are looked at for each", name, work)
		}
	}
}
