package rawjson

import "fmt"

// SyntaxError says where and why text is not the JSON that was asked for.
type SyntaxError struct {
	// Offset is the index of the first byte that does not fit, or the length of
	// the text when it ends too early.
	Offset int
	// Reason says what is wrong there.
	Reason string
}

// Error returns the reason and the offset in one line.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Reason)
}

// Object calls field for each member of the object in b, in the order of the
// text and as often as a key occurs. key is the decoded key and is valid only
// during the call; value is the raw bytes of the value, a slice of b, without
// white space around it.
//
// It returns a *SyntaxError when b is not exactly one valid JSON object, with or
// without white space around it; field may then have been called for the members
// before the damage. When field returns an error, Object stops and returns that
// error as it is. Object allocates only for keys that contain escapes or invalid
// UTF-8.
func Object(b []byte, field func(key, value []byte) error) error {
	end, err := walkObject(b, field)
	if end < 0 && err == nil {
		return explain(b, end, '{', "not an object")
	}
	return err
}

// Array calls elem for each element of the array in b, in order, with its raw
// bytes: a slice of b, without white space around it. Errors are those of
// [Object].
func Array(b []byte, elem func(value []byte) error) error {
	end, err := walkArray(b, elem)
	if end < 0 && err == nil {
		return explain(b, end, '[', "not an array")
	}
	return err
}

// walkObject is Object without the words: end is what a walker returns.
func walkObject(b []byte, field func(key, value []byte) error) (end int, err error) {
	i, more := open(b, '{', '}')
	var scratch []byte
	for more {
		key, start := readKey(b, i, &scratch)
		if start < 0 {
			return start, nil
		}
		end := skip(b, start, maxDepth-1)
		if end < 0 {
			return end, nil
		}
		if err := field(key, b[start:end:end]); err != nil {
			return end, err
		}
		i, more = skipComma(b, end, '}')
	}
	return atEnd(b, i), nil
}

// readKey is skipKey that also decodes the key, into scratch if need be.
func readKey(b []byte, i int, scratch *[]byte) (key []byte, next int) {
	if i >= len(b) || b[i] != '"' {
		return nil, ^i
	}
	start := i + 1
	if i = plainASCII(b, start); i < len(b) && b[i] == '"' {
		return b[start:i:i], skipColon(b, i+1)
	}
	if i = skipString(b, i); i < 0 {
		return nil, i
	}
	if key = b[start : i-1 : i-1]; !plain(key) {
		*scratch = unquote((*scratch)[:0], key)
		key = *scratch
	}
	return key, skipColon(b, i)
}

// walkArray is Array without the words: end is what a walker returns.
func walkArray(b []byte, elem func(value []byte) error) (end int, err error) {
	i, more := open(b, '[', ']')
	for more {
		end := skip(b, i, maxDepth-1)
		if end < 0 {
			return end, nil
		}
		if err := elem(b[i:end:end]); err != nil {
			return end, err
		}
		i, more = skipComma(b, end, ']')
	}
	return atEnd(b, i), nil
}

// open walks the beginning of a container that is all of b. Its results are
// those of skipComma.
func open(b []byte, opening, closing byte) (next int, more bool) {
	i := space(b, 0)
	if i >= len(b) || b[i] != opening {
		return ^i, false
	}
	i = space(b, i+1)
	if i < len(b) && b[i] == closing {
		return i + 1, false
	}
	return i, true
}

// atEnd passes on the result i of a walker if nothing but white space follows.
func atEnd(b []byte, i int) int {
	if i < 0 {
		return i
	}
	if i = space(b, i); i < len(b) {
		return ^i
	}
	return i
}

// explain puts the result of a walker that found b broken into words. wrongKind
// is what to say of a value that does not begin with the byte opening.
func explain(b []byte, result int, opening byte, wrongKind string) error {
	if result == tooDeep {
		return &SyntaxError{deepest(b), fmt.Sprintf("nested deeper than %d levels", maxDepth)}
	}
	at := ^result
	switch {
	case at >= len(b):
		return &SyntaxError{len(b), "unexpected end"}
	case at == space(b, 0) && b[at] != opening && Kind(b[at:]) != 0:
		return &SyntaxError{at, wrongKind}
	}
	return &SyntaxError{at, fmt.Sprintf("unexpected %q", b[at:at+1])}
}

// deepest returns the index of the bracket or brace of b that opens one level
// too many; there is one, and the text before it is valid.
func deepest(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = skipString(b, i+1) - 1
		case '[', '{':
			if depth++; depth > maxDepth {
				return i
			}
		case ']', '}':
			depth--
		}
	}
	return len(b)
}
