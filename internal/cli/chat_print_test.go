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
	// Without an end, the first answer breaks off there, and the second is whole.
	piece := func(w http.ResponseWriter, text, end string) {
		fmt.Fprintf(w, "data: {\"id\":\"r\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":%s}]}\n\n", text, end)
		w.(http.Flusher).Flush()
	}
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
		w.Header().Set("Content-Type", "text/event-stream")
		piece(w, "one ", "null")
		select {
		case <-more:
			if ends == "" && asked.Add(1) == 1 {
				panic(http.ErrAbortHandler) // the connection breaks
			}
			piece(w, "two", cmp.Or(ends, `"stop"`))
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

// A script must know that not all that it read is the answer.
func TestAnAnswerThatBeginsAgainIsPartial(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	close(more)
	out, errs, code := printing(t, t.Context(), more, "")
	all, err := io.ReadAll(out)
	if got := <-code; err != nil || string(all) != "one \n\none two\n" || got != exitPartial || !strings.Contains(errs.String(), "does not count") {
		t.Errorf("%q is printed, %v, exit code %d\n%s", all, err, got, errs)
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
