package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/html"
	"github.com/coppice-dev/coppice/render/markdown"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

type exportFlags struct {
	format, to, out, leaf string
	force, inline, redact bool
	link                  bool
}

var exportFormats = []string{"md", "html", "json", "jsonl"}

func exportCommand(a *app) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export ID",
		Short: "Write a session for people or programs",
		Long: "Export writes a session for other people and programs:\n\n" +
			"  md     the conversation as Markdown\n" +
			"  html   one page with all branches, tools and images, for reading offline\n" +
			"  json   one document with the header, all entries, the leaf and the labels\n" +
			"  jsonl  the bytes of the log; --inline fills in what is kept in blobs\n\n" +
			"Sessions that continue each other are written as one conversation, as jsonl as\n" +
			"the log that it would have; --link writes the one that is named alone.\n\n" +
			"With --to it writes the files of another program, where that program looks for\n" +
			"them, and prints their paths and the command that goes on there. They are read\n" +
			"back before they are put there; what they cannot hold is listed. The formats are\n" +
			strings.Join(formatNames(true), ", ") + ".",
		Example:           "  coppice export 0199 -o talk.html\n  coppice export 0199 --format md | less\n  coppice export 0199 --to codex",
		GroupID:           "read",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeSession(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runExport(cmd, args[0], &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", "", "as md, html, json or jsonl; default: as FILE ends, else md")
	flags.StringVarP(&f.out, "output", "o", "", "write to FILE instead of standard output")
	flags.StringVar(&f.leaf, "leaf", "", "the entry at which the path ends (not with json, jsonl)")
	flags.BoolVar(&f.inline, "inline", false, "with jsonl: fill in the content that is kept in blobs")
	flags.BoolVar(&f.force, "force", false, "overwrite FILE")
	flags.StringVar(&f.to, "to", "", "another program's format, such as codex")
	linkFlag(cmd, &f.link)
	chainFlag(cmd)
	flags.BoolVar(&f.redact, "redact", false, "take out secrets")
	cmd.MarkFlagsMutuallyExclusive("to", "format")
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(formatNames(true), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(exportFormats, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("leaf", a.completeEntries)
	return cmd
}

// settle completes the flags, or says what is wrong with them.
func (f *exportFlags) settle() error {
	if f.format == "" {
		f.format = "md"
		if ending := strings.TrimPrefix(filepath.Ext(f.out), "."); slices.Contains(exportFormats, ending) {
			f.format = ending
		}
	}
	switch {
	case !slices.Contains(exportFormats, f.format):
		return usageError{fmt.Errorf("--format is %q; it must be one of %s", f.format, strings.Join(exportFormats, ", "))}
	case f.inline && f.format != "jsonl":
		return usageError{fmt.Errorf("--inline is for jsonl; %s has all content anyway", f.format)}
	case f.leaf != "" && strings.HasPrefix(f.format, "json"):
		return usageError{fmt.Errorf("--leaf is for md and html; %s has all branches", f.format)}
	}
	return nil
}

func (a *app) runExport(cmd *cobra.Command, id string, f *exportFlags) error {
	if f.to != "" {
		return a.runExportTo(cmd.Context(), id, f)
	}
	if err := f.settle(); err != nil {
		return err
	}
	return a.withConversation(cmd.Context(), id, f.link, func(o opened) error {
		leaf, err := resolveEntry(o.Session, f.leaf)
		if err != nil {
			return err
		}
		if f.redact && f.format != "jsonl" {
			copied, err := redactedCopy(cmd.Context(), o.Session)
			if err != nil {
				return err
			}
			defer copied.Close()
			o.Session = copied
		}
		write := func(w io.Writer) error { return a.export(cmd.Context(), w, o, leaf, f) }
		if f.out == "" || f.out == "-" {
			return a.printDocument(strings.HasPrefix(f.format, "json"), func(w io.Writer) error {
				buffered := bufio.NewWriter(w)
				return errors.Join(write(buffered), buffered.Flush())
			})
		}
		if err := writeFile(f.out, f.force, write); err != nil {
			return err
		}
		a.say("wrote %s", f.out)
		return nil
	})
}

func (a *app) export(ctx context.Context, w io.Writer, o opened, leaf string, f *exportFlags) error {
	switch f.format {
	case "html":
		c := o.conversation()
		var err error
		if c.Title, err = titleOf(o.Session); err != nil {
			return err
		}
		return html.Write(ctx, w, c, &html.Options{Leaf: leaf})
	case "json":
		return exportJSON(w, o)
	case "jsonl":
		return exportLines(ctx, w, o, f)
	}
	c, err := a.drawn(ctx, o)
	if err != nil {
		return err
	}
	return markdown.Write(ctx, w, c, leaf)
}

// exportJSON writes one document, an entry at a time.
func exportJSON(w io.Writer, o opened) error {
	labels, err := o.Labels()
	if err != nil {
		return err
	}
	head, err := json.Marshal(o.Header())
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "{\"header\":%s,\n\"entries\":[", head); err != nil {
		return err
	}
	comma := "\n"
	for e, err := range o.Entries() {
		if err != nil {
			return err
		}
		line, err := e.MarshalJSON()
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s%s", comma, line); err != nil {
			return err
		}
		comma = ",\n"
	}
	leaf := []byte("null")
	if id := o.LeafID(); id != "" {
		leaf = rawjson.AppendString(nil, id)
	}
	named, err := json.Marshal(labels)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\n],\n\"leaf\":%s,\n\"labels\":%s}\n", leaf, named)
	return err
}

// exportLines writes the log as it is, damaged lines included; with --redact,
// without the secrets in its lines (what is in blobs is not written, unless
// --inline fills it in first).
func exportLines(ctx context.Context, w io.Writer, o opened, f *exportFlags) (err error) {
	if len(o.chain.Links)+len(o.chain.Missing) > 1 {
		return exportChain(w, o, f)
	}
	log, err := o.store.Open(ctx, o.name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return err
		}
		if line.Cut {
			return &session.Error{
				Op: "export", Name: o.name, Offset: int64(line.Pos), At: true, Kind: session.ErrTooLarge,
				Hint: "the line is longer than max_entry; COPPICE_MAX_ENTRY raises that",
			}
		}
		data := line.Data
		if f.inline {
			data = o.inlined(data)
		}
		if f.redact {
			data = transcript.Redact(data)
		}
		if _, err := w.Write(append(data, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// exportChain writes the log that a conversation would have if it were one session.
func exportChain(w io.Writer, o opened, f *exportFlags) error {
	line, err := json.Marshal(o.Header())
	if err != nil {
		return err
	}
	write := func(line []byte) error {
		if f.redact {
			line = transcript.Redact(line)
		}
		_, err := w.Write(append(line, '\n'))
		return err
	}
	if err := write(line); err != nil {
		return err
	}
	ids, err := o.EntryIDs()
	if err != nil {
		return err
	}
	for some := range slices.Chunk(ids, render.ReadAtOnce) {
		entries, err := o.Peek(some...)
		if err != nil {
			return err
		}
		for i := range entries {
			e := entries[i]
			if e.Type == session.TypeGap {
				continue // it is not there
			}
			if f.inline {
				if e, err = o.Entry(e.ID); err != nil {
					return err
				}
			}
			line, err := e.MarshalJSON()
			if err == nil {
				err = write(line)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// inlined returns a line with its blobs filled in. A line that has none, or that
// cannot be read, stays as it is.
func (o opened) inlined(line []byte) []byte {
	h, ok := rawjson.ScanHead(line)
	if !ok || !bytes.Contains(line, []byte(`"blob"`)) {
		return line
	}
	e, err := o.Entry(string(h.ID))
	if err != nil {
		return line
	}
	filled, err := e.MarshalJSON()
	if err != nil {
		return line
	}
	return filled
}
