package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice"
	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/all"
)

type importFlags struct {
	from                              string
	all, watch, dryRun, redact, again bool
	interval                          time.Duration
}

func importCommand(a *app) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import [PATH…|-]",
		Short: "Read the transcripts of other programs",
		Long: "Import reads the transcripts of other programs into sessions. A directory means\n" +
			"all transcripts in it, - standard input. What a file is of is told by its\n" +
			"content; --from says it.\n\n" +
			"Importing again adds only what is new. A source that is gone leaves its session\n" +
			"where it is. Every byte that was read is kept, compressed, beside the entries\n" +
			"made of it: coppice show --raw prints it.",
		Example: "  coppice import --all --dry-run\n" +
			"  coppice import ~/.claude/projects\n" +
			"  coppice import --watch --all\n" +
			"  coppice import --from openai - < messages.json",
		GroupID: "write",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runImport(cmd.Context(), args, &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "the format; default: what the content looks like")
	flags.BoolVar(&f.all, "all", false, "everything that known programs keep on this machine")
	flags.BoolVar(&f.watch, "watch", false, "go on importing as files grow, until interrupted")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be imported")
	flags.BoolVar(&f.redact, "redact", false, "take out secrets, also of the bytes that are kept")
	flags.BoolVar(&f.again, "again", false, "read files from the beginning, also those that did not change")
	flags.DurationVar(&f.interval, "interval", time.Second, "how often --watch looks")
	cmd.MarkFlagsMutuallyExclusive("watch", "dry-run")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(formatNames(false), cobra.ShellCompDirectiveNoFileComp))
	return a.withJSON(cmd)
}

// formatNames lists the formats, or those that can be written.
func formatNames(written bool) []string {
	var names []string
	for _, f := range all.Formats() {
		if !written || f.Write != nil {
			names = append(names, f.Name)
		}
	}
	return names
}

func (a *app) runImport(ctx context.Context, args []string, f *importFlags) error {
	switch {
	case len(args) == 0 && !f.all:
		return usageError{errors.New("import needs a PATH, - for standard input, or --all")}
	case f.from != "" && all.Named(f.from) == nil:
		return usageError{fmt.Errorf("--from is %q; it must be one of %s", f.from, strings.Join(formatNames(false), ", "))}
	case f.interval <= 0:
		return usageError{errors.New("--interval must be more than nothing")}
	case f.watch && contains(args, "-"):
		return usageError{errors.New("standard input cannot be watched")}
	}
	opts, err := a.importOptions()
	if err != nil {
		return err
	}
	st, err := file.Open(a.settings.Get(coppice.SettingDir).Value, opts)
	if err != nil {
		return err
	}
	im := &transcript.Importer{Store: st, Ledger: transcript.LedgerOf(st), DryRun: f.dryRun, Again: f.again}
	if f.redact || a.settings.Get(coppice.SettingRedact).Value == "true" {
		im.Clean = redacted
	}
	run := &importRun{app: a, flags: f, im: im}
	if f.watch {
		err = run.watch(ctx, args)
	} else {
		err = run.once(ctx, args)
	}
	return errors.Join(err, st.Close())
}

// importOptions open the store so that each session is durable when it is closed.
func (a *app) importOptions() (opts *file.Options, err error) {
	err = a.withHome(context.Background(), true, func(h *coppice.Home) error {
		opts = h.StoreOptions()
		if opts.Sync == file.Always {
			opts.Sync = file.Every(time.Second)
		}
		return nil
	})
	return opts, err
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}

// redacted takes secrets out of a line, a document or an entry.
func redacted(raw []byte) []byte {
	if clean, _, err := redact.JSON(raw); err == nil {
		return clean
	}
	clean, _ := redact.Bytes(raw)
	return clean
}

// importRun is one run of the command.
type importRun struct {
	*app
	flags *importFlags
	im    *transcript.Importer

	mu       sync.Mutex // guards what follows, and the output
	files    int
	same     int
	sessions int
	entries  int
	problems int
	failed   int
	bar      *importBar
}

// once imports everything there is now.
func (r *importRun) once(ctx context.Context, args []string) error {
	sources, err := r.sources(args)
	if err != nil {
		return err
	}
	if r.flags.all {
		r.sayPlaces(sources)
	}
	r.bar = newImportBar(r.app, sources)
	r.im.Progress = r.bar.add
	err = r.importAll(ctx, sources)
	r.bar.stop()
	if err != nil {
		return err
	}
	r.sayTotal()
	if r.failed > 0 || r.problems > 0 {
		return errPartial
	}
	return nil
}

// importAll imports files, several at a time.
func (r *importRun) importAll(ctx context.Context, sources []importSource) error {
	next := make(chan importSource)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 4) {
		workers.Go(func() {
			for src := range next {
				r.one(ctx, src)
			}
		})
	}
	for _, src := range sources {
		if ctx.Err() != nil {
			break
		}
		next <- src
	}
	close(next)
	workers.Wait()
	return ctx.Err()
}

// one imports one file and says what came of it.
func (r *importRun) one(ctx context.Context, src importSource) {
	report, err := r.importFile(ctx, src)
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(err, errNoFormat) && src.found {
		return // a directory holds other files too
	}
	r.files++
	if err != nil && ctx.Err() == nil {
		r.failed++
		r.bar.clear()
		if !strings.Contains(err.Error(), src.path) {
			err = fmt.Errorf("%s: %w", src.path, err)
		}
		r.sayError(err)
	}
	r.count(report)
	if err := r.show(src, report, err); err != nil {
		r.failed++
	}
}

var errNoFormat = errors.New("no known format")

func (r *importRun) importFile(ctx context.Context, src importSource) (*transcript.Report, error) {
	if src.err != nil {
		return nil, src.err
	}
	f, err := r.openSource(src.path)
	if err != nil {
		return nil, err
	}
	format := src.format
	if r.flags.from != "" {
		format = all.Named(r.flags.from)
	}
	if format == nil {
		if format = all.Detect(f); format == nil {
			return nil, &session.Error{
				Op: "import", Path: src.path, Kind: session.ErrInvalid, Err: errNoFormat, Hint: "--from says what it is",
			}
		}
	}
	return r.im.Import(ctx, format, f)
}

// maxStdin is how much of standard input is read: it is held in memory.
const maxStdin = 1 << 30

func (r *importRun) openSource(path string) (*transcript.File, error) {
	if path != "-" {
		return transcript.OpenFile(path)
	}
	data, err := io.ReadAll(io.LimitReader(r.stdin, maxStdin+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxStdin {
		return nil, &session.Error{
			Op: "import", Path: "-", Kind: session.ErrTooLarge, Err: fmt.Errorf("more than %d MiB", maxStdin>>20),
			Hint: "put it into a file: files of any size are read",
		}
	}
	return transcript.FileOf("-", data), nil
}

func (r *importRun) count(report *transcript.Report) {
	if report == nil {
		return
	}
	if report.Unchanged {
		r.same++
	}
	r.problems += report.Problems
	for i := range report.Sessions {
		if report.Sessions[i].New > 0 {
			r.sessions++
			r.entries += report.Sessions[i].New
		}
	}
}

// watch imports as files grow.
func (r *importRun) watch(ctx context.Context, args []string) error {
	r.bar = newImportBar(r.app, nil)
	r.say("watching; interrupt to stop")
	seen := make(map[string]os.FileInfo)
	tick := time.NewTicker(r.flags.interval)
	defer tick.Stop()
	for first := true; ; first = false {
		sources, err := r.sources(args)
		if err != nil && first {
			return err // later it may have gone for a moment
		}
		if err := r.importAll(ctx, changed(sources, seen)); err != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
			continue
		}
		break
	}
	r.sayTotal()
	return nil
}

// changed returns the files that look other than when they were last looked at,
// or so fresh that another change would not show.
func changed(sources []importSource, seen map[string]os.FileInfo) []importSource {
	const fresh = 3 * time.Second
	var list []importSource
	for _, src := range sources {
		info, err := os.Stat(src.path)
		if err != nil {
			continue
		}
		before := seen[src.path]
		if before == nil || before.Size() != info.Size() || !before.ModTime().Equal(info.ModTime()) || time.Since(info.ModTime()) < fresh {
			list = append(list, src)
		}
		seen[src.path] = info
	}
	return list
}
