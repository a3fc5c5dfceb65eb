package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/redact"
)

// KeyFunc returns the key of a provider. It is asked before each attempt, so it
// should remember what takes time.
type KeyFunc func(ctx context.Context) (string, error)

// KeyVariable returns the variable of the environment in which people keep the key
// of a provider, or "".
func KeyVariable(provider string) string {
	if d := dialects[provider]; d != nil {
		return d.variable
	}
	return ""
}

// StaticKey returns a key that is known.
func StaticKey(key string) KeyFunc {
	return func(context.Context) (string, error) { return key, nil }
}

// maxKeyTime is how long a command may take to print a key: people may have to
// type a password.
const maxKeyTime = 2 * time.Minute

// CommandKey runs a shell command that prints the key, such as "pass show
// anthropic", when the key is needed for the first time.
func CommandKey(command string) KeyFunc {
	var mu sync.Mutex
	var key string
	return func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if key != "" {
			return key, nil
		}
		ctx, cancel := context.WithTimeout(ctx, maxKeyTime)
		defer cancel()
		var out, complaint bytes.Buffer
		cmd := exec.CommandContext(ctx, shell[0], append(shell[1:], command)...)
		cmd.Stdout, cmd.Stderr = &out, &complaint
		cmd.WaitDelay = time.Second
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("the command that prints the key: %w%s", err, lastLine(complaint.String())) // not what it printed
		}
		line, _, _ := strings.Cut(strings.TrimLeft(out.String(), "\r\n"), "\n")
		if key = strings.TrimSpace(line); key == "" {
			return "", errors.New("the command that should print the key printed nothing")
		}
		return key, nil
	}
}

// lastLine returns the end of a command's error output, for an error. It may be the key,
// so it is shown without any word that could be one.
func lastLine(complaint string) string {
	lines := strings.Split(strings.TrimSpace(complaint), "\n")
	last, _ := redact.Text(lines[len(lines)-1])
	words := strings.Fields(last)
	for i, w := range words {
		if len(w) >= 16 || len(w) >= 8 && strings.ContainsAny(w, "0123456789") {
			words[i] = "…"
		}
	}
	if last = strings.Join(words, " "); last == "" {
		return ""
	}
	if len(last) > maxComplaint {
		last = strings.ToValidUTF8(last[:maxComplaint], "") + "…"
	}
	return ": " + last
}

// maxComplaint is how many bytes of that an error shows.
const maxComplaint = 200

// key returns the key, or "" if there is none.
func (c *Client) key(ctx context.Context) (string, error) {
	if c.opts.Key == nil {
		return "", nil
	}
	key, err := c.opts.Key(ctx)
	if err == nil {
		err = checkKey(key)
	}
	if err != nil {
		return "", &provider.Error{Kind: provider.ErrDenied, Provider: c.info.Provider, Err: err}
	}
	return key, nil
}

// checkKey refuses a key that cannot be in a header. The key itself is not in the
// error.
func checkKey(key string) error {
	for _, r := range key {
		if r <= ' ' || r > '~' {
			return errors.New("the key has a space or another character that keys do not have")
		}
	}
	return nil
}
