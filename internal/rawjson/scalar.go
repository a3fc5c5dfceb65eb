package rawjson

import "strconv"

// Kind tells what a raw value is by its first byte alone: 'o' object, 'a' array,
// 's' string, 'n' number, 'b' boolean, '0' null, and 0 when no value begins so.
func Kind(b []byte) byte {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case '{':
		return 'o'
	case '[':
		return 'a'
	case '"':
		return 's'
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return 'n'
	case 't', 'f':
		return 'b'
	case 'n':
		return '0'
	}
	return 0
}

// Int decodes an integer that fits an int64. As in encoding/json, a literal with
// a fraction or an exponent is not one, whatever its value: "1.0" and "1e3" are
// not ok.
func Int(b []byte) (n int64, ok bool) {
	if Kind(b) != 'n' || skipNumber(b, 0) != len(b) {
		return 0, false
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return 0, false
	}
	return n, true
}

// Bool decodes true or false.
func Bool(b []byte) (v, ok bool) {
	switch string(b) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// IsNull reports whether b is null.
func IsNull(b []byte) bool { return string(b) == "null" }
