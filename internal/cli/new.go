package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice"
	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

type newFlags struct {
	title, key string
	tags       []string
}

func newCommand(a *app) *cobra.Command {
	var f newFlags
	cmd := &cobra.Command{
		Use:     "new",
		Short:   "Begin a session and print its id",
		GroupID: "write",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runNew(cmd, &f) },
	}
	cmd.Flags().StringVar(&f.title, "title", "", "its display name")
	cmd.Flags().StringSliceVar(&f.tags, "tag", nil, "a tag; may be given several times")
	cmd.Flags().StringVar(&f.key, "key", "", "your own name for it, such as telegram:123456")
	return cmd
}

func (a *app) runNew(cmd *cobra.Command, f *newFlags) error {
	return a.withHome(cmd.Context(), true, func(h *coppice.Home) error { return a.beginSession(cmd, h.Store(), f) })
}

func (a *app) beginSession(cmd *cobra.Command, st *file.Store, f *newFlags) (err error) {
	cwd, _ := os.Getwd() // a session without it is still a session
	header := session.Header{CWD: cwd, Key: f.key}
	if cmd.Flags().Changed("key") { // so that whoever knows the key finds the session
		if header.ID, err = keyed.SessionID(f.key); err != nil {
			return usageError{err}
		}
	}
	s, err := session.Create(cmd.Context(), st, header, a.options())
	if f.key != "" && errors.Is(err, session.ErrExist) {
		return &session.Error{
			Op: "begin", Name: f.key, Kind: session.ErrExist, Err: fmt.Errorf("session %s has this key", header.ID),
			Hint: "a key has one session: use it where an id goes, as in " + command("append", []string{f.key}),
		}
	}
	if err != nil {
		return err
	}
	if f.title != "" {
		_, err = s.AppendSessionInfo(f.title)
	}
	if err == nil && len(f.tags) > 0 {
		_, err = s.SetTags(f.tags...)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	return a.print("%s", s.ID())
}
