package rawjson_test

import (
	"fmt"
	"strings"
)

// nasty is all the text below that is not a session line.
func nasty() []string { return append(append(disputed(), nested()...), shifted()...) }

// disputed is text on which JSON readers are known to disagree.
func disputed() []string {
	return []string{
		// Nothing, white space, byte order mark.
		"", " ", "\t\r\n ", "\v", "\f", "\u00a0", "\x00", "\xef\xbb\xbf{}", " 1 ", "1\x00", "\x001",
		// Literal names.
		"null", "true", "false", "nul", "nulL", "nullx", "tru", "truE", "truex", "fals", "falsey", "True", "NaN", "Infinity", "undefined",
		// Numbers.
		"0", "-0", "-", "--1", "+1", "00", "01", "-01", "1.", ".5", "1.5", "-1.5e+10", "1e", "1e+", "1E-", "1e5", "1E5", "1e05", "1.e5", "1.0e",
		"0.", "0.0", "0e0", "0x10", "1_000", "1 2", "1,", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
		"-9223372036854775809", "1e400", "123456789012345678901234567890", "1.0", "1e3", "-0.0", "１",
		// Strings.
		`""`, `"`, `"a`, `"a"b`, `'a'`, `"\"`, `"\\"`, `"\\\"`, `"\/"`, `"\'"`, `"\a"`, `"\x41"`, `"\0"`, `"\b\f\n\r\t"`, `"\B"`, `"\U0041"`,
		`"\u"`, `"\u0"`, `"\u00"`, `"\u004"`, `"\u0041"`, `"\u004g"`, `"\u00G1"`, `"\u004`, `"\u0041`, `"\u 041"`, `"\u-041"`, `"\u+041"`,
		`"\uABCD\uabcd"`, `"\u0000"`, `"\ud83d\ude00"`, `"\uD83D\uDE00"`, `"\ud83d"`, `"\ude00"`, `"\ud83dx"`, `"\ud83d\n"`, `"\ud83d\u0041"`,
		`"\ud83d\ud83d\ude00"`, `"\ude00\ud83d"`, `"\ud83d\ude0"`, `"\ud83d\`, `"\ud83d\u`, `"\ufffd"`, `"\u2028\u2029"`, `"\u007f"`,
		"\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"\t\"", "\"\n\"", "\"a\rb\"", "\"\\\n\"", "\"\x80\"", "\"\xff\xfe\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"",
		"\"\xf4\x90\x80\x80\"", "\"\xe2\x82\"", "\"\xe2\\u0041\"", "\"\xe2\x80\xa8\"", "\"\xe2\x80\xa9 \xe2\x80\xa7\"", "\"\xef\xbf\xbd\"", "\"é世界😀\"",
		"\"\xa2\xa3\xdc\"", "\"\x80\x80\x80\x80\x80\x80\x80\x80\"", `"0123456`, `"01234567`, `"0123456"`, `"01234567"`, `"012345678"`,
		// Arrays.
		"[]", "[ ]", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[,]", "[1 2]", "[1,,2]", "[1]]", "[[]", "[[1,[2]],3]", "[1}", "[\n1\t,\r2 ]", `["a" , "b"]`,
		"[null,true,false]", "[nul]", "[-]", "[1:2]", `["a":1]`, "[\xef\xbb\xbf]", "[1]\x00",
		// Objects.
		"{}", "{ }", "{", "}", `{"a"}`, `{"a":}`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,}`, `{,"a":1}`, `{a:1}`, `{'a':1}`, `{1:1}`, `{null:1}`, `{"a" 1}`,
		`{"a"::1}`, `{"a":1 "b":2}`, `{"a":1,,"b":2}`, `{"a":1]`, `{"a":1}}`, `{"a":{"b":[{}]}}`, `{"":0}`, `{"a":1,"a":2}`, ` { "a" : 1 , "b" : 2 } `,
		`{"\u0061":1}`, `{"\ud800":1}`, "{\"\xff\":1}", `{"é":1}`, `{"a\":1}`, `{"a":1}x`, `{"a":tru}`, `{"a":"\x"}`, "{\"\n\":1}", `{"a":01}`, `{"a`, `{"a\`, `{"a":`,
		`{"a": 1} {"b": 2}`, `{"a":1}//c`, `/*c*/{}`, "{}\r\n", "{\"a\":1}\x00\x00",
	}
}

// nested is values about as deep as they may be.
func nested() []string {
	var list []string
	for _, depth := range []int{63, 64, 65, 9999, 10000, 10001} {
		list = append(list,
			strings.Repeat("[", depth)+strings.Repeat("]", depth),
			strings.Repeat("[", depth),
			strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth),
			strings.Repeat(`[{"]":`, depth/2)+`"}"`+strings.Repeat("}]", depth/2),
		)
	}
	return list
}

// shifted puts each byte that ends a run of plain text at each place of the
// eight bytes that are looked at together, with more and with less after it.
func shifted() []string {
	var list []string
	for before := range 18 {
		for _, c := range []string{`"`, `\`, `\n`, `\"`, `\u00e9`, `\u00e`, "\x00", "\x1f", "\x20", "\x21", "\x23", "\x7f", "\x80", "\xa2", "\xdc", "é"} {
			for _, after := range []int{0, 3, 7, 8, 17} {
				list = append(list, fmt.Sprintf(`"%s%s%s"`, strings.Repeat("a", before), c, strings.Repeat("b", after)))
			}
		}
	}
	return list
}

// heads are session lines, in and out of order, whole and damaged.
func heads() []string {
	const head = `{"type":"message","id":"m1","parent_id":"m0","timestamp":"2026-01-01T00:00:00.000Z"`
	return []string{
		head + `}`,
		head + `,"message":{"role":"user","content":"hi"}}`,
		head + "}\r\n",
		" \t" + head + "} \t\r\n",
		"\xef\xbb\xbf" + head + `,"x":1}`,
		"\xef\xbb\xbf \n" + head + `,"x":1} `,
		" \xef\xbb\xbf" + head + `}`,
		"\xef\xbb\xbf", "\xef\xbb\xbf  ", "\xef\xbb",
		head, head + ` }`, head + `,`, head + `,}`, head + `,"x":`, head + `]}`, head + `"}`, head + `}}`, head + `,"x":1}` + "\x00", head + ",\x00\x00}",
		head + ` ,"x":1}`, head + `,"id":"other"}`, head + `,"parent_id":null}`, head + `x}`,
		`{"type":"session","id":"s","parent_id":null,"timestamp":"t"}`,
		`{"type":"session","id":"s","parent_id":null,"timestamp":"t","cwd":"/"}`,
		`{"type":"session","id":"s","parent_id":nullx,"timestamp":"t"}`,
		`{"type":"","id":"","parent_id":"","timestamp":""}`,
		`{"type":"a","id":"b","timestamp":"t"}`,
		`{"type":"a","id":"b","parent_id":"c"}`,
		`{"type":"a"}`, `{"id":"a"}`, `{"parent_id":"a"}`, `{"timestamp":"a"}`, `{"other":"a"}`, `{}`, ` {} `, `[]`, `"id"`, `null`, ``,
		`{"timestamp":"t","parent_id":"p","id":"i","type":"y"}`,
		`{"message":{"id":"inner","type":"inner"},"id":"outer","type":"outer"}`,
		`{ "type": "a", "id": "b", "parent_id": null, "timestamp": "t", "x": [1, 2] }`,
		`{"type":"a","id":"b","parent_id": null,"timestamp":"t"}`,
		`{"Type":"a","ID":"b","PARENT_ID":"c","Timestamp":"t"}`,
		`{"ty\u0070e":"a","\u0069d":"b","parent\u005fid":"c","time\u0073tamp":"t"}`,
		`{"type":"\u0061","id":"b\"","parent_id":"\ud800","timestamp":"\\"}`,
		"{\"type\":\"\xff\",\"id\":\"\xe2\x82\",\"parent_id\":\"é\",\"timestamp\":\"世\"}",
		"{\"type\":\"a\",\"id\":\"é\",\"parent_id\":null,\"timestamp\":\"t\",\"x\":1}",
		"{\"type\":\"a\nb\",\"id\":\"c\",\"parent_id\":null,\"timestamp\":\"t\"}",
		`{"type":1,"id":2,"parent_id":3,"timestamp":4}`,
		`{"type":null,"id":null,"parent_id":null,"timestamp":null}`,
		`{"type":["a"],"id":{"id":"x"},"parent_id":false,"timestamp":true}`,
		`{"id":"first","id":"second"}`, `{"id":1,"id":"second"}`, `{"id":null,"\u0069d":"second"}`, `{"\u0069d":"first","id":"second"}`,
		`{"parent_id":1,"parent_id":null}`, `{"parent_id":null,"parent_id":"second"}`, `{"parent_id":"first","parent_id":null}`,
		`{"type":"a","type":"b","id":"c","parent_id":null,"timestamp":"t"}`,
		`{"type":"a","id":"b","parent_id":"c`, `{"type":"a","id":"b","parent_id":nul`, `{"type":"a","id":"b`, `{"type":"a","id":`, `{"type":"a","id"`, `{"type":"a"`, `{"type":"a`, `{"ty`, `{`,
		`{"type":"a","id":"b"x`, `{"id":"b"` + "\x00\x00", `{"id":"b","text":"` + "\x00\x00\x00", "\x00\x00\x00",
	}
}
