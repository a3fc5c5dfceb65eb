// Package rawjson walks and writes JSON text without reflection, and without
// decoding values that no caller asked for.
//
// A session is read far more often than it is understood: opening one needs four
// short members of each line, copying one needs none. So a value stays the bytes
// it came as until a caller wants it as a Go value:
//
//   - [ScanHead] reads the leading members of a session line and stops there;
//   - [Object] and [Array] hand out the raw bytes of each member or element;
//   - [String], [Int], [Bool] and [IsNull] decode one raw scalar;
//   - [Any] and [Map] decode a whole value, and lose no digit of a number;
//     [IsValue] tells whether it still is what it was decoded from;
//   - a [Reader] reads what is known of a value on its way through the text;
//   - [Skip] and [Valid] check text and keep nothing;
//   - the Append functions write.
//
// What is accepted, and what a string decodes to, is exactly what encoding/json
// accepts and decodes: invalid UTF-8 is let through and read as U+FFFD, as are
// lone surrogates; values nested deeper than 10000 levels are refused. What is
// written is byte for byte what an Encoder of encoding/json in Go 1.26 writes after
// SetEscapeHTML(false). Two things differ on purpose: keys are matched exactly,
// never by case folding, and nothing here skips white space around a scalar,
// because the values that Object and Array hand out have none.
//
// All functions may be called concurrently. They keep no reference to their
// arguments, but several return slices of them, as they say.
package rawjson
