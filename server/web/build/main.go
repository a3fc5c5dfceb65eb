// Command build bundles the page: it makes dist from src and the packages that package.json
// names, which npm ci must have installed. It is a module of its own, so that those who import
// Coppice need not download a bundler. With -check it writes nothing, and fails if dist is not
// what the sources give.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

// maxSize is how many bytes the page may have when it is compressed: a phone should not wait
// for it.
const maxSize = 150_000

func main() {
	check := flag.Bool("check", false, "only find out whether dist is what the sources give")
	dir := flag.String("dir", "..", "the directory that has src and dist")
	flag.Parse()
	if err := run(*dir, *check, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func run(dir string, check bool, out io.Writer) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	made, err := bundle(dir)
	if err != nil {
		return err
	}
	size := 0
	var wrong []error
	for _, name := range []string{"index.html", "app.js", "app.css"} {
		size += compressed(made[name])
		if !check {
			wrong = append(wrong, os.WriteFile(filepath.Join(dir, "dist", name), made[name], 0o666))
			continue
		}
		if is, err := fs.ReadFile(os.DirFS(dir), "dist/"+name); err != nil || !bytes.Equal(is, made[name]) {
			wrong = append(wrong, fmt.Errorf("dist/%s is not what the sources give; make web makes it", name))
		}
	}
	fmt.Fprintf(out, "the page has %d bytes, compressed\n", size)
	if size > maxSize {
		wrong = append(wrong, fmt.Errorf("that is more than %d", maxSize))
	}
	return errors.Join(wrong...)
}

func bundle(dir string) (map[string][]byte, error) {
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: dir,
		EntryPoints:   []string{"src/app.tsx", "src/app.css"},
		Bundle:        true,
		Outdir:        "dist",
		Format:        api.FormatESModule,
		Target:        api.ES2022,
		JSX:           api.JSXAutomatic, JSXImportSource: "preact",
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		LegalComments: api.LegalCommentsNone,
		LogLevel:      api.LogLevelWarning,
	})
	if len(result.Errors) > 0 {
		return nil, errors.New("the sources cannot be bundled; has npm ci installed the packages?")
	}
	made := make(map[string][]byte)
	for _, f := range result.OutputFiles {
		made[filepath.Base(f.Path)] = f.Contents
	}
	var err error
	made["index.html"], err = fs.ReadFile(os.DirFS(dir), "src/index.html")
	return made, err
}

func compressed(text []byte) int {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = z.Write(text)                                  // a buffer takes everything
	_ = z.Close()
	return b.Len()
}
