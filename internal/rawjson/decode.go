package rawjson

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Any decodes the one value in b as encoding/json decodes into an any, except
// that no digit of a number is lost: a number that a float64 cannot hold is a
// json.Number. See [Number]. It returns a *SyntaxError when b is not exactly one
// valid value.
func Any(b []byte) (any, error) {
	d := decoder{b, math.MaxInt}
	v, end := d.value(space(b, 0), maxDepth)
	if end = atEnd(b, end); end < 0 {
		return nil, explain(b, end, 0, "not a value")
	}
	return v, nil
}

// MaxDecoded is how many values [Map] decodes below the members of an object.
const MaxDecoded = 1 << 16

// Map decodes the object in b as [Any] does. A decoded value takes many times the memory of its
// text, so objects and arrays for which MaxDecoded leaves no room stay text: their members are of
// type json.RawMessage, and slices of b. It returns a *SyntaxError for anything that is not an
// object.
func Map(b []byte) (map[string]any, error) {
	d := decoder{b, MaxDecoded}
	m, end := d.members(space(b, 0))
	if end = atEnd(b, end); end < 0 {
		return nil, explain(b, end, '{', "not an object")
	}
	return m, nil
}

// maxExactDigits is how many significant digits every float64 holds.
const maxExactDigits = 15

// Number returns the value of a number: a float64 if that holds the number as it
// is written, and else a json.Number, which keeps the text. 1, 0.1 and 1.50 are
// float64s; 123456789012345678, 1e400 and 0.12345678901234567890 are not. So
// ordinary numbers have the type that Go programs expect, and the id of a chat
// is never rounded. b must be a valid number.
func Number(b []byte) any {
	text := string(b)
	f, err := strconv.ParseFloat(text, 64)
	short := len(text) <= maxExactDigits && !strings.ContainsAny(text, "eE")
	if err == nil && (short || sameDecimal(text, strconv.FormatFloat(f, 'e', -1, 64))) {
		return f
	}
	return json.Number(text)
}

// sameDecimal reports whether two numbers are written with the same digits and
// magnitude, whatever their notation: 100, 1e2 and 1.00E+2 are the same.
func sameDecimal(a, b string) bool {
	digitsA, pointA := decimal(a)
	digitsB, pointB := decimal(b)
	return digitsA == digitsB && (pointA == pointB || digitsA == "" || digitsA == "-")
}

// decimal returns the significant digits of a number, with its sign, and where
// the decimal point stands relative to the first of them.
func decimal(s string) (digits string, point int) {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	mantissa, exponent := s, ""
	if at := strings.IndexAny(s, "eE"); at >= 0 {
		mantissa, exponent = s[:at], s[at+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	point = len(whole)
	digits = whole + fraction
	rest := strings.TrimLeft(digits, "0")
	point -= len(digits) - len(rest)
	if n, err := strconv.Atoi(exponent); err == nil {
		point += n
	}
	return sign + strings.TrimRight(rest, "0"), point
}

// tooMany is what a decoder returns instead of an index when there are more values than it may
// decode. It is the complement of no index, and not [tooDeep].
const tooMany = math.MinInt + 1

// decoder decodes values of a text.
type decoder struct {
	b    []byte
	left int // so many more values may be decoded
}

// members decodes the object that starts at i as [Map] does.
func (d *decoder) members(i int) (map[string]any, int) {
	b, m := d.b, make(map[string]any)
	if i >= len(b) || b[i] != '{' {
		return nil, ^i
	}
	if i = space(b, i+1); i < len(b) && b[i] == '}' {
		return m, i + 1
	}
	var scratch []byte
	for more := true; more; {
		key, start := readKey(b, i, &scratch)
		if start < 0 {
			return nil, start
		}
		name := string(key)
		room := d.left
		d.left++ // the member itself is not counted
		v, end := d.value(start, maxDepth-1)
		if d.left = min(d.left, room); end == tooMany {
			if d.left, end = room, skip(b, start, maxDepth-1); end >= 0 {
				v = json.RawMessage(b[start:end:end])
			}
		}
		if end < 0 {
			return nil, end
		}
		m[name] = v
		i, more = skipComma(b, end, '}')
	}
	if i < 0 {
		return nil, i
	}
	return m, i
}

// value returns the value that starts at i and the index after it, which is what a walker returns,
// or tooMany.
func (d *decoder) value(i, depth int) (any, int) {
	b := d.b
	if i >= len(b) {
		return nil, ^len(b)
	}
	if d.left--; d.left < 0 {
		return nil, tooMany
	}
	switch b[i] {
	case '{':
		return d.object(i, depth)
	case '[':
		return d.array(i, depth)
	}
	end := skip(b, i, depth)
	if end < 0 {
		return nil, end
	}
	switch raw := b[i:end]; raw[0] {
	case '"':
		s, _ := String(raw)
		return s, end
	case 't', 'f':
		return raw[0] == 't', end
	case 'n':
		return nil, end
	default:
		return Number(raw), end
	}
}

func (d *decoder) object(i, depth int) (map[string]any, int) {
	if depth == 0 {
		return nil, tooDeep
	}
	b, m := d.b, make(map[string]any)
	i = space(b, i+1)
	if i < len(b) && b[i] == '}' {
		return m, i + 1
	}
	var scratch []byte
	for more := true; more; {
		key, start := readKey(b, i, &scratch)
		if start < 0 {
			return nil, start
		}
		name := string(key)
		v, end := d.value(start, depth-1)
		if end < 0 {
			return nil, end
		}
		m[name] = v
		i, more = skipComma(b, end, '}')
	}
	if i < 0 {
		return nil, i
	}
	return m, i
}

func (d *decoder) array(i, depth int) ([]any, int) {
	if depth == 0 {
		return nil, tooDeep
	}
	b, list := d.b, []any{}
	i = space(b, i+1)
	if i < len(b) && b[i] == ']' {
		return list, i + 1
	}
	for more := true; more; {
		v, end := d.value(i, depth-1)
		if end < 0 {
			return nil, end
		}
		list = append(list, v)
		i, more = skipComma(b, end, ']')
	}
	if i < 0 {
		return nil, i
	}
	return list, i
}
