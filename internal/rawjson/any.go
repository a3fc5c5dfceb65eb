package rawjson

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
)

// maxPlainDepth is how deep AppendAny goes by itself. Below that it leaves the
// value to encoding/json, which notices a value that contains itself.
const maxPlainDepth = 64

// AppendAny appends v as an encoding/json Encoder would after
// SetEscapeHTML(false), without the newline: map keys are sorted. The types that
// decoding into an any yields are written without reflection, all others by
// encoding/json. On error dst is returned as it was.
func AppendAny(dst []byte, v any) ([]byte, error) {
	grown, err := appendAny(dst, v, maxPlainDepth)
	if err != nil {
		return dst, err
	}
	return grown, nil
}

func appendAny(dst []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case string:
		return AppendString(dst, v), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int:
		return AppendInt(dst, int64(v)), nil
	case int64:
		return AppendInt(dst, v), nil
	case float64:
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			return appendFloat(dst, v), nil
		}
	case json.Number:
		if b := []byte(v); Kind(b) == 'n' && skipNumber(b, 0) == len(b) {
			return append(dst, b...), nil
		}
	case map[string]any:
		if v != nil && depth > 0 {
			return appendMap(dst, v, depth-1)
		}
	case []any:
		if v != nil && depth > 0 {
			return appendSlice(dst, v, depth-1)
		}
	}
	return appendReflected(dst, v)
}

func appendMap(dst []byte, m map[string]any, depth int) ([]byte, error) {
	dst = append(dst, '{')
	for i, k := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, k), ':')
		var err error
		if dst, err = appendAny(dst, m[k], depth); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func appendSlice(dst []byte, s []any, depth int) ([]byte, error) {
	dst = append(dst, '[')
	for i, v := range s {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendAny(dst, v, depth); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// appendFloat appends f, which must be finite, as JavaScript would: with an
// exponent only when it is very small or large, and no zero before its digits.
func appendFloat(dst []byte, f float64) []byte {
	abs := math.Abs(f)
	if abs == 0 || 1e-6 <= abs && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	if n := len(dst); dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst = append(dst[:n-2], dst[n-1])
	}
	return dst
}

// appendReflected leaves v to encoding/json.
func appendReflected(dst []byte, v any) ([]byte, error) {
	w := appender(dst)
	enc := json.NewEncoder(&w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return w[:len(w)-len("\n")], nil
}

// appender is a slice as an io.Writer.
type appender []byte

func (a *appender) Write(p []byte) (int, error) {
	*a = append(*a, p...)
	return len(p), nil
}
