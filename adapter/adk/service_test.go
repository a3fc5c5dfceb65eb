package adk_test

import (
	"testing"

	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/session/sessiontestsuite"

	"github.com/coppice-dev/coppice/adapter/adk"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

// stores are the stores that tests run on.
var stores = map[string]func(t testing.TB) store.Store{
	"file":   func(t testing.TB) store.Store { return fileStore(t, t.TempDir()) },
	"memory": func(testing.TB) store.Store { return memory.New(nil) },
}

func fileStore(t testing.TB, dir string) store.Store {
	t.Helper()
	st := mustGet(file.Open(dir, nil))(t)
	t.Cleanup(func() { mustDo(t, st.Close()) })
	return st
}

func mustDo(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustGet[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		mustDo(t, err)
		return v
	}
}

// ADK's own suite for services.
func TestServiceSuite(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			sessiontestsuite.RunServiceTests(t, sessiontestsuite.SuiteOptions{SupportsUserProvidedSessionID: true},
				func(t *testing.T) session.Service { return adk.New(open(t), nil) })
		})
	}
}
