package rawjson_test

import (
	"encoding/json"
	"testing"
)

// addSeeds adds the texts that are short and unlike each other; with all of them
// the fuzzer spends its time on the seeds.
func addSeeds(f *testing.F) {
	f.Helper()
	for _, s := range append(disputed(), heads()...) {
		f.Add([]byte(s))
	}
}

// FuzzValid: Valid and Skip accept what encoding/json accepts.
func FuzzValid(f *testing.F) {
	addSeeds(f)
	f.Fuzz(checkValid)
}

// FuzzString: strings are decoded and encoded as encoding/json does.
func FuzzString(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		checkString(t, b)
		checkString(t, []byte(`"`+string(b)+`"`))
		checkAppendString(t, string(b))
		checkInt(t, b)
	})
}

// FuzzHead: ScanHead tells what a json.Decoder reads.
func FuzzHead(f *testing.F) {
	addSeeds(f)
	f.Fuzz(checkHead)
}

// FuzzObject: Object and Array hand out what a json.Decoder reads.
func FuzzObject(f *testing.F) {
	addSeeds(f)
	f.Fuzz(checkWalk)
}

// FuzzAny: AppendAny writes what encoding/json writes.
func FuzzAny(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var v any
		if json.Unmarshal(b, &v) == nil {
			checkAny(t, v)
		}
	})
}

// FuzzDecode: Any and Map decode what a json.Decoder does, and every number as it
// is written.
func FuzzDecode(f *testing.F) {
	addSeeds(f)
	f.Fuzz(checkDecode)
}
