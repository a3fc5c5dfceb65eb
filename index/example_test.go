package index_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

func ExampleIndex_Search() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	s, err := session.New(dir, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = s.AppendMessage(session.RoleUser, []session.Content{session.Text("Why does parseHeader lose the last byte?")})
	if err != nil {
		fmt.Println(err)
		return
	}
	s.Close()

	st, err := file.Open(dir, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer st.Close()
	ctx := context.Background()
	ix, err := index.Open(ctx, st, filepath.Join(dir, "index.db"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ix.Close()
	if _, err := ix.CatchUp(ctx, nil); err != nil {
		fmt.Println(err)
		return
	}
	found, err := ix.Search(ctx, index.SearchOptions{Query: "header byte"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, hit := range found.Hits {
		fmt.Println(hit.Role, hit.Live, hit.Snippet)
	}
	// Output:
	// user true Why does parseHeader lose the last byte?
}
