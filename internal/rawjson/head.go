package rawjson

import "bytes"

// Head is what the first bytes of a session line tell: its four leading members.
// The slices point into the line; only one whose text contains escapes or
// invalid UTF-8 is a decoded copy. A member that is absent, or is not a string,
// is nil; an empty string is not nil.
type Head struct {
	Type      []byte
	ID        []byte
	Parent    []byte
	Timestamp []byte
	// Role is the role of a message, if it is where our writer puts it: first
	// in a message that follows the head. Otherwise it is nil, whatever the role.
	Role []byte
	// Rest is what follows Role in the line, if there is one.
	Rest []byte
	// HasParent: there is a parent_id, and it is a string or null. When it is
	// null, Parent is nil.
	HasParent bool
	// Whole: all of the line was looked at, and it is one valid JSON object. When
	// it is false after ScanHead, only the head is known to be good.
	Whole bool
}

// ScanHead reads the members type, id, parent_id and timestamp of a session
// line. When a key occurs more than once, its first occurrence counts, even if
// that one is not a string.
//
// When the four are first, in this order, without space or escapes, as our
// writer writes them, ScanHead stops after them and of the rest only checks that
// the line ends with a brace. Otherwise it walks and validates the whole line.
// ok is false when the line is not a JSON object as far as was looked at. A
// UTF-8 byte order mark before the line, and white space around it, are accepted.
func ScanHead(line []byte) (h Head, ok bool) {
	line = trimLine(line)
	if h, ok = leadingHead(line); ok {
		return h, true
	}
	if h = walkHead(line); !h.Whole {
		return Head{}, false
	}
	return h, true
}

// LenientHead salvages as much as it can of the head of a damaged line, such as one
// that was cut off or ends in NULs: the members it finds, in any order, before
// the first damage. ok is true when the id was among them. The first occurrence
// of a key counts.
func LenientHead(line []byte) (h Head, ok bool) {
	h = walkHead(trimLine(line))
	return h, h.ID != nil
}

// Blank reports whether a line has nothing in it but a byte order mark and the
// white space of JSON.
func Blank(line []byte) bool { return len(trimLine(line)) == 0 }

// trimLine removes a byte order mark and the white space around the line.
func trimLine(line []byte) []byte {
	line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	line = line[space(line, 0):]
	for n := len(line); n > 0; n-- {
		if c := line[n-1]; c != '\n' && c != '\r' && c != ' ' && c != '\t' {
			return line[:n]
		}
	}
	return line
}

// leadingHead reads the head of a trimmed line that begins as our writer would
// begin it. It is the hot loop of opening a session.
func leadingHead(line []byte) (h Head, ok bool) {
	var i int
	if h.Type, i = plainMember(line, 0, `{"type":"`); i < 0 {
		return Head{}, false
	}
	if h.ID, i = plainMember(line, i, `,"id":"`); i < 0 {
		return Head{}, false
	}
	if j := i + len(`,"parent_id":null`); j <= len(line) && string(line[i:j]) == `,"parent_id":null` {
		i = j
	} else if h.Parent, i = plainMember(line, i, `,"parent_id":"`); i < 0 {
		return Head{}, false
	}
	h.HasParent = true
	if h.Timestamp, i = plainMember(line, i, `,"timestamp":"`); i < 0 {
		return Head{}, false
	}
	last := len(line) - 1
	if i > last || line[last] != '}' || line[i] != ',' && i != last {
		return Head{}, false
	}
	h.Whole = i == last
	if string(h.Type) == "message" {
		if role, end := plainMember(line, i, `,"message":{"role":"`); end >= 0 {
			h.Role, h.Rest = role, line[end:]
		}
	}
	return h, true
}

// plainMember reads a string that follows prefix at i and is all ASCII without
// escapes, so that its bytes are its value. next is the index after it, or -1.
func plainMember(line []byte, i int, prefix string) (value []byte, next int) {
	start := i + len(prefix)
	if start > len(line) || string(line[i:start]) != prefix {
		return nil, -1
	}
	end := plainASCII(line, start)
	if end >= len(line) || line[end] != '"' {
		return nil, -1
	}
	return line[start:end:end], end + 1
}

// walkHead reads the head of a trimmed line up to the first damage.
func walkHead(line []byte) Head {
	var w headWalk
	end, _ := walkObject(line, w.read)
	w.head.Whole = end >= 0
	return w.head
}

// headWalk collects the head from members in any order.
type headWalk struct {
	head Head
	// Which keys were there already: a first occurrence that is not a string
	// leaves its member nil, and must still win over later ones.
	hasType, hasID, hasParent, hasTimestamp bool
}

func (w *headWalk) read(key, value []byte) error {
	switch string(key) {
	case "type":
		readString(&w.head.Type, &w.hasType, value)
	case "id":
		readString(&w.head.ID, &w.hasID, value)
	case "timestamp":
		readString(&w.head.Timestamp, &w.hasTimestamp, value)
	case "parent_id":
		if !w.hasParent {
			w.head.HasParent = Kind(value) == 's' || IsNull(value)
		}
		readString(&w.head.Parent, &w.hasParent, value)
	}
	return nil
}

// readString sets member to the string in value, unless there was one before.
func readString(member *[]byte, seen *bool, value []byte) {
	if !*seen {
		*member, _ = StringBytes(value, nil)
	}
	*seen = true
}
