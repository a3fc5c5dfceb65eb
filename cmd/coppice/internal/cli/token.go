package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server/token"
)

// tokenCommand needs no server: tokens are in the home, so they can be made before one is
// started and revoked while it runs.
func tokenCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke a server's tokens",
		Long: "Clients of coppice serve need a token. A token may read, write or do everything in\n" +
			"the home. People who must not see each other's sessions need a home each.",
	}
	cmd.AddCommand(tokenAddCommand(a), tokenRevokeCommand(a))
	return withDefault(cmd, a.withJSON(&cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the tokens, but not their secrets",
		RunE:    a.onHome(a.listTokens),
	}))
}

// madeToken is what is known of a new token only now.
type madeToken struct {
	token.Token
	Secret string `json:"token"`
}

// tokenAddCommand gives the least by default: a token that may only read.
func tokenAddCommand(a *app) *cobra.Command {
	var write, admin bool
	var expires age
	var made madeToken
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a token and print it once",
		Long: "Makes a token and prints it. The home keeps only a hash, so the token cannot be\n" +
			"shown again: save it where you need it. Without --write or --admin it may only read.",
		Example: "  coppice token add laptop --admin\n" +
			"  coppice token add bot --write --expires 90d",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			made.Name = args[0]
			switch {
			case admin:
				made.Access = home.Admin
			case write:
				made.Access = home.Write
			default:
				made.Access = home.Read
			}
			if cmd.Flags().Changed("expires") {
				made.Expires = time.Now().Add(expires.Duration).UTC().Truncate(time.Second)
			}
			return a.withHome(cmd.Context(), true, func(h *home.Home) error { return a.addToken(cmd.Context(), h, made) })
		},
	}
	flags := cmd.Flags()
	flags.Bool("read", false, "it may read sessions (the default)")
	flags.BoolVar(&write, "write", false, "it may also change them, and move them to the trash")
	flags.BoolVar(&admin, "admin", false, "it may do everything")
	flags.Var(&expires, "expires", "refuse it after this `AGE`: 30d, 12h")
	cmd.MarkFlagsMutuallyExclusive("read", "write", "admin")
	return a.withJSON(cmd)
}

// addToken prints the secret alone on standard output, so that it can go straight into a file
// or a variable.
func (a *app) addToken(ctx context.Context, h *home.Home, made madeToken) (err error) {
	made.Created = time.Now().UTC().Truncate(time.Second)
	if made.Secret, err = token.Of(h.Store()).Add(ctx, made.Token); err != nil || a.flags.json {
		return a.asJSON(made, err)
	}
	a.say("this is the token %s; it is not shown again", made.Name)
	return a.print("%s", made.Secret)
}

// listTokens shows when a token was last used, which is how to find those that can be revoked.
func (a *app) listTokens(ctx context.Context, h *home.Home, _ []string) error {
	all, err := token.Of(h.Store()).List(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		a.say("there are no tokens; %s makes one", a.command("token add NAME", nil))
		return nil
	}
	now := time.Now()
	return printList(a, all, a.newTable("NAME", "NAME", "ACCESS", "EXPIRES", "USED"), func(one *token.Token) []string {
		expires, used := "never", "never"
		switch {
		case one.Expires.IsZero():
		case one.Expires.After(now):
			expires = one.Expires.Local().Format("2006-01-02 15:04")
		default:
			expires = "expired"
		}
		if !one.Used.IsZero() {
			used = a.when(one.Used, now)
		}
		return []string{one.Name, one.Access.String(), expires, used}
	})
}

// tokenRevokeCommand goes on after a name that there is not, so that the other tokens are
// revoked in any case.
func tokenRevokeCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:               "revoke NAME…",
		Short:             "Delete tokens; servers then refuse them",
		ValidArgsFunction: a.completeTokens,
		RunE: a.onHome(func(ctx context.Context, h *home.Home, args []string) error {
			return a.each(ctx, args, func(name string) error {
				if err := token.Of(h.Store()).Revoke(ctx, name); err != nil {
					return err
				}
				return a.done(map[string]string{"name": name}, name, "the token "+name+" is revoked")
			})
		}),
	})
}

// completeTokens offers the names of tokens, with what each may do: that is what they are
// revoked for.
func (a *app) completeTokens(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.offering(cmd, func(ctx context.Context, h *home.Home) (offers []cobra.Completion, err error) {
		all, err := token.Of(h.Store()).List(ctx)
		for _, one := range all {
			offers = append(offers, cobra.CompletionWithDesc(one.Name, one.Access.String()))
		}
		return offers, err
	})
}
