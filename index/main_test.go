package index_test

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(readerDir); dir != "" {
		readDeleted(dir)
		os.Exit(0)
	}
	code := m.Run()
	for _, dir := range benchDirs {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}
