package store

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is the maximum length of a log's name in bytes. With its extension it must
// fit the 255 bytes that file systems allow.
const MaxName = 200

// CheckName returns nil if name can name a log in every store and on every
// system we run on, and otherwise an error that says why not and matches
// ErrInvalid. Names that differ only in case are different names; a program that
// makes its own should not rely on that, because some file systems disagree.
func CheckName(name string) error {
	if reason := badName(name); reason != "" {
		return &Error{Op: "check name", Kind: ErrInvalid, Err: fmt.Errorf("%.80q %s", name, reason)}
	}
	return nil
}

// CheckRoom is CheckName for a room of notes, which may also be "".
func CheckRoom(room string) error {
	if room == "" {
		return nil
	}
	return CheckName(room)
}

func badName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > MaxName:
		return fmt.Sprintf("is %d bytes long, over the limit of %d", len(name), MaxName)
	case !utf8.ValidString(name):
		return "is not valid UTF-8"
	case name[0] == '.':
		return "begins with a dot"
	case strings.ContainsAny(name, `/\`):
		return "contains a path separator"
	case strings.ContainsAny(name, `<>:"|?*`):
		return "contains a character that Windows does not allow in file names"
	case strings.ContainsFunc(name, unprintable):
		return "contains a control character"
	case strings.ContainsFunc(name, strangeSpace):
		return "contains white space other than the space"
	case name[len(name)-1] == '.' || name[len(name)-1] == ' ' || name[0] == ' ':
		return "begins or ends with a space, or ends with a dot"
	case isDevice(name):
		return "is a reserved device name on Windows"
	}
	return ""
}

// unprintable also catches format characters such as the bidirectional
// overrides, with which one name can be made to look like another.
func unprintable(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

func strangeSpace(r rune) bool { return r != ' ' && unicode.IsSpace(r) }

// isDevice reports whether Windows would take the name, with or without an
// extension, for a device.
func isDevice(name string) bool {
	base, _, _ := strings.Cut(strings.ToUpper(name), ".")
	base = strings.TrimRight(base, " ")
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	port, ok := strings.CutPrefix(base, "COM")
	if !ok {
		port, ok = strings.CutPrefix(base, "LPT")
	}
	return ok && utf8.RuneCountInString(port) == 1 && strings.Contains("0123456789¹²³", port)
}
