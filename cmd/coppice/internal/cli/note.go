package cli

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// noteCommand records who leaves the note, since a note may come from a person, a script or an
// agent, and a model has to know whose word it is.
func noteCommand(a *app) *cobra.Command {
	var r home.NoteRequest
	cmd := &cobra.Command{
		Use:   "note ID [TEXT…|-]",
		Short: "Leave a note in a session",
		Long: "Leaves a note at the end of the conversation, for people and for the agents that\n" +
			"continue it, and prints its id. A note is not the user's message: readers see who\n" +
			"wrote it, a model gets it as a quotation, and nothing waits for an answer. Its text\n" +
			"is the arguments, or standard input if there are none or it is -.",
		Example: "  coppice note 7f3a91c2 \"the tests of the parser are slow, not broken\"\n" +
			"  make lint | coppice note 7f3a91c2 --by lint -",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r.Session = args[0]
			if r.Text, err = a.readText(args[1:]); err != nil {
				return err
			}
			r.By = cmp.Or(r.By, a.getenv("USER"), a.getenv("USERNAME"))
			return a.withHome(cmd.Context(), false, func(h *home.Home) error {
				left, err := h.Entries.Note(cmd.Context(), r)
				if err != nil {
					return err
				}
				return a.made(left, left.Entry, "left note "+render.ShortID(left.Entry)+" in session "+render.ShortID(left.Session))
			})
		},
	}
	cmd.Flags().StringVar(&r.By, "by", "", "who writes it, a `name` (default: yours on this machine)")
	return a.withJSON(a.withRedact(cmd))
}
