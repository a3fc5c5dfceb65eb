package token_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/server/token"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

func add(t *testing.T, tokens *token.Tokens, of token.Token) string {
	t.Helper()
	secret, err := tokens.Add(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// A token is known by its secret alone, and the store has the secret nowhere.
func TestTokensAreKeptAsHashes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	tokens := token.Of(st)
	secret := add(t, tokens, token.Token{Name: "one", Access: home.Write})
	other := add(t, tokens, token.Token{Name: "two", Access: home.Read})
	for _, wrong := range []string{"", "cop_", secret[:len(secret)-1], secret + "A", strings.ToLower(secret), "cop_" + strings.Repeat("A", 52)} {
		if _, err := tokens.Check(t.Context(), wrong); !errors.Is(err, token.ErrRefused) {
			t.Errorf("%q is let in: %v", wrong, err)
		}
	}
	got, err := token.Of(st).Check(t.Context(), secret)
	if err != nil || got.Name != "one" || got.Access != home.Write {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := tokens.Check(t.Context(), other); err != nil || got.Name != "two" || got.Access != home.Read {
		t.Errorf("%+v, %v", got, err)
	}
	for part, err := range st.Parts().All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		data, err := st.Parts().Open(t.Context(), part)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(data)
		if err != nil || strings.Contains(string(text), secret[len(token.Prefix):]) {
			t.Errorf("%s has the secret (%v)", part.Place, err)
		}
		data.Close()
	}
	if found := redact.Find([]byte(secret)); len(found) != 1 || found[0].Kind != "coppice-token" {
		t.Errorf("it is not recognised: %+v", found)
	}
}

// One process revokes; another, which serves, refuses the token within a second, and takes
// a new one at once.
func TestRevokedAndNewTokensInARunningServer(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	defer st.Close()
	serving, managing := token.Of(st), token.Of(st)
	secret := add(t, managing, token.Token{Name: "one", Access: home.Read})
	if _, err := serving.Check(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := managing.Revoke(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	revoked := time.Now()
	for {
		asked := time.Now()
		_, err := serving.Check(t.Context(), secret)
		if errors.Is(err, token.ErrRefused) {
			break
		}
		if asked.Sub(revoked) > time.Second {
			t.Fatalf("it is let in after %v: %v", asked.Sub(revoked), err)
		}
	}
	if err := managing.Revoke(t.Context(), "one"); !errors.Is(err, session.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestExpiredTokenIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(nil)
		defer st.Close()
		tokens := token.Of(st)
		expires := time.Now().Add(100 * time.Millisecond)
		secret := add(t, tokens, token.Token{Name: "one", Access: home.Read, Expires: expires})
		for range 20 {
			_, err := tokens.Check(t.Context(), secret)
			if early := time.Now().Before(expires); early && err != nil || !early && !errors.Is(err, token.ErrRefused) {
				t.Errorf("%v after it expired: %v", time.Since(expires), err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// counting counts what is written.
type counting struct {
	store.Store
	mu      sync.Mutex
	changes int
}

type countingNotes struct {
	store.Notes
	of *counting
}

func (c *counting) Notes(room string) store.Notes { return countingNotes{c.Store.Notes(room), c} }

func (n countingNotes) Change(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
	n.of.mu.Lock()
	n.of.changes++
	n.of.mu.Unlock()
	return n.Notes.Change(ctx, name, change)
}

// The last use is known, and a thousand requests at the same time write it down once.
func TestUseIsWrittenDownOnce(t *testing.T) {
	t.Parallel()
	st := &counting{Store: memory.New(nil)}
	defer st.Close()
	tokens := token.Of(st)
	secret := add(t, tokens, token.Token{Name: "one", Access: home.Read})
	before := time.Now().Add(-time.Second)
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			for range 50 {
				if _, err := tokens.Check(t.Context(), secret); err != nil {
					t.Error(err)
				}
			}
		})
	}
	asking.Wait()
	if st.changes != 2 { // with the one that made it
		t.Errorf("%d writes", st.changes)
	}
	list, err := token.Of(st).List(t.Context())
	if err != nil || len(list) != 1 || list[0].Used.Before(before) {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestTokensThatCannotBe(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	defer st.Close()
	tokens := token.Of(st)
	for what, of := range map[string]token.Token{
		"no name":      {Access: home.Read},
		"a path":       {Name: "../x", Access: home.Read},
		"control":      {Name: "a\nb", Access: home.Read},
		"long":         {Name: strings.Repeat("a", 65), Access: home.Read},
		"no access":    {Name: "a"},
		"much access":  {Name: "a", Access: home.Admin + 1},
		"over already": {Name: "a", Access: home.Read, Expires: time.Now()},
	} {
		if _, err := tokens.Add(t.Context(), of); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	add(t, tokens, token.Token{Name: "a", Access: home.Read})
	if _, err := tokens.Add(t.Context(), token.Token{Name: "a", Access: home.Admin}); !errors.Is(err, session.ErrExist) {
		t.Errorf("%v", err)
	}
}
