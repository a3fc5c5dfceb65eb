package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
)

// migrateCommand is never run by another command: changing the tables of a database that others
// use is a decision, and needs rights that most of them do not have.
func migrateCommand(a *app) *cobra.Command {
	var blobs string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Make or update the tables of a database",
		Long: "Makes the tables of a home in a PostgreSQL database, or brings them to the version\n" +
			"that this program needs. Run it once before the first use, and again when a new\n" +
			"version asks for it. It changes no session, and can be run at any time, also while\n" +
			"others work. There is no way back to an older version.\n\n" +
			"Images and long results of tools are in the database, too. With --blobs they go to a\n" +
			"directory that all machines share, given by its whole path, or to a bucket of S3 or of\n" +
			"a server that speaks its protocol; --blobs database undoes that. It applies to all\n" +
			"programs at once, and what is elsewhere stays readable. The keys of a bucket are taken\n" +
			"from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.\n\n" +
			"The role must be allowed to create a schema in the database, or own the one that is\n" +
			"there. Everyone else needs less: see docs/postgres.md.",
		Example: "  coppice migrate --dir postgres://owner@db.example.com/agents\n" +
			"  COPPICE_HOME='postgres://owner@db/agents?tenant=team' coppice migrate\n" +
			"  coppice migrate --blobs 's3://bucket/sessions?endpoint=https://minio.example.com'",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runMigrate(cmd.Context(), blobs) },
	}
	cmd.Flags().StringVar(&blobs, "blobs", "", "where blobs go: a directory, s3://bucket/prefix or database")
	return a.withJSON(cmd)
}

// runMigrate opens no home, because there may be none before it, or one that is too old to
// open.
func (a *app) runMigrate(ctx context.Context, blobs string) error {
	did, err := home.Migrate(ctx, "", blobs, &home.Options{Settings: a.settings})
	if err != nil || a.flags.json {
		return a.asJSON(did, err)
	}
	switch {
	case did.From == did.To:
		a.say("%s is up to date: its tables have version %d", did.Home, did.To)
	case did.From == 0:
		a.say("made the tables of %s", did.Home)
	default:
		a.say("brought the tables of %s from version %d to %d", did.Home, did.From, did.To)
	}
	if did.Blobs != "" {
		a.say("images and long results of tools go to %s", did.Blobs)
	}
	return nil
}
