package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// printing runs coppice chat --print with a model that says "one " and waits until more is
// closed. It returns the output, and the exit code when the program has ended.
func printing(t *testing.T, ctx context.Context, more <-chan struct{}, ends string) (out *bufio.Reader, errs *strings.Builder, code <-chan int) {
	t.Helper()
	// Without an end, the first answer breaks off there, and the second is whole; "else" is the
	// same with other words.
	piece := func(w http.ResponseWriter, text, end string) {
		fmt.Fprintf(w, "data: {\"id\":\"r\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":%s}]}\n\n", text, end)
		w.(http.Flusher).Flush()
	}
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
		w.Header().Set("Content-Type", "text/event-stream")
		if ends == "else" && asked.Load() > 0 {
			piece(w, "on ", "null")
		} else {
			piece(w, "one ", "null")
		}
		select {
		case <-more:
			if !strings.HasPrefix(ends, `"`) && asked.Add(1) == 1 {
				panic(http.ErrAbortHandler) // the connection breaks
			}
			piece(w, "two", cmp.Or(strings.TrimPrefix(ends, "else"), `"stop"`))
			fmt.Fprint(w, "data: [DONE]\n\n")
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	env := map[string]string{
		"COPPICE_HOME": filepath.Join(dir, "sessions"), "HOME": dir, "COPPICE_SYNC": "never",
		"COPPICE_PROVIDER": "openai-chat", "COPPICE_MODEL": "m", "COPPICE_BASE_URL": server.URL,
	}
	getenv := func(name string) string { return env[name] }
	read, write := io.Pipe()
	errs = new(strings.Builder)
	a := &app{talk: newTalk(write, errs, getenv), stdin: strings.NewReader(""), getenv: getenv}
	ended := make(chan int, 1)
	go func() {
		exit := a.run(ctx, []string{"chat", "-p", "count"})
		_ = write.Close()
		ended <- exit
	}()
	return bufio.NewReader(read), errs, ended
}

func TestPrintedAnswersArriveAsTheyAreSaidAndTellIfTheyAreCutOff(t *testing.T) {
	t.Parallel()
	for ends, want := range map[string]int{`"stop"`: exitOK, `"length"`: exitPartial, `"content_filter"`: exitPartial} {
		more := make(chan struct{})
		out, errs, code := printing(t, t.Context(), more, ends)
		if first, err := out.ReadString(' '); err != nil || first != "one " {
			t.Fatalf("%s: before the answer ends, %q is printed, %v", ends, first, err)
		}
		close(more)
		rest, err := io.ReadAll(out)
		if got := <-code; err != nil || string(rest) != "two\n" || got != want {
			t.Errorf("%s: %q is printed, %v, exit code %d, want %d\n%s", ends, rest, err, got, want, errs)
		}
	}
}

// What is said again is printed once. A script must know if not all that it read is the answer.
func TestAnAnswerThatBeginsAgain(t *testing.T) {
	t.Parallel()
	for ends, want := range map[string]struct {
		out, says string
		code      int
	}{
		"":     {"one two\n", "trying again", exitOK},
		"else": {"one \n\non two\n", "does not count", exitPartial},
	} {
		more := make(chan struct{})
		close(more)
		out, errs, code := printing(t, t.Context(), more, ends)
		all, err := io.ReadAll(out)
		if got := <-code; err != nil || string(all) != want.out || got != want.code || !strings.Contains(errs.String(), want.says) {
			t.Errorf("%q: %q is printed, %v, exit code %d\n%s", ends, all, err, got, errs)
		}
	}
}

func TestAnInterruptedAnswerIsPrintedUpToThere(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	out, errs, code := printing(t, ctx, nil, "")
	if _, err := out.ReadString(' '); err != nil {
		t.Fatal(err)
	}
	cancel(interrupted{})
	rest, err := io.ReadAll(out)
	if got := <-code; err != nil || string(rest) != "\n" || got != exitInterrupted {
		t.Errorf("%q is printed, %v, exit code %d\n%s", rest, err, got, errs)
	}
}
