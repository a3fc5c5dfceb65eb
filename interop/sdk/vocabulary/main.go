// Command vocabulary writes the vocabularies of package window/tiktoken, from the tables
// of another tokenizer. Its test holds the two tokenizers against each other.
//
//	go -C interop/sdk run ./vocabulary
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"github.com/tiktoken-go/tokenizer"
)

// directory is where the files are, seen from the root of this module.
const directory = "../../window/tiktoken"

func main() {
	for _, name := range []tokenizer.Encoding{tokenizer.O200kBase, tokenizer.Cl100kBase} {
		if err := write(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func write(name tokenizer.Encoding) error {
	codec, err := tokenizer.Get(name)
	if err != nil {
		return err
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return err
	}
	defer encoder.Close()
	path := filepath.Join(directory, string(name)+".zst")
	return os.WriteFile(path, encoder.EncodeAll(vocabulary(codec), nil), 0o644)
}

// vocabulary returns a byte with the length of every token, in the order of their ids,
// then a zero, then their text. Lengths and text compress better apart.
func vocabulary(codec tokenizer.Codec) []byte {
	var lengths, text []byte
	for id := uint(0); ; id++ {
		token, err := codec.Decode([]uint{id})
		if err != nil { // the ids have no gaps
			return append(append(lengths, 0), text...)
		}
		lengths = append(lengths, byte(len(token)))
		text = append(text, token...)
	}
}
