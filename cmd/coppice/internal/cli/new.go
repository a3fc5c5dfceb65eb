package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// newCommand makes an empty session, for programs that want an id before they have a message.
// People begin with coppice chat.
func newCommand(a *app) *cobra.Command {
	var r home.CreateRequest
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Start a session and print its id",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("key") && r.Key == "" {
				return misuse("--key is empty")
			}
			r.CWD, _ = os.Getwd() // a session without it is still a session
			return a.withHome(cmd.Context(), true, func(h *home.Home) error {
				made, err := h.Sessions.Create(cmd.Context(), r)
				if r.Key != "" && home.KindOf(err) == home.KindExists {
					return hinted(err, "a key has one session: use it where an id goes, as in "+a.command("append", []string{r.Key}))
				}
				if err != nil {
					return err
				}
				return a.made(made, made.Session, "began session "+render.ShortID(made.Session))
			})
		},
	}
	cmd.Flags().StringVar(&r.Title, "title", "", "its display name")
	cmd.Flags().StringArrayVar(&r.Tags, "tag", nil, "a tag; can be repeated")
	cmd.Flags().StringVar(&r.Key, "key", "", "your own name for it, such as telegram:123456")
	return a.withJSON(cmd)
}
