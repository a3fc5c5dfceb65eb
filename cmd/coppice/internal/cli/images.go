package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

type imagesFlags struct {
	search, out string
	force       bool
}

// imagesCommand lists without an IMAGE and gets one with it. Numbers are those of the list,
// because they are easier to type than the hash of an image.
func imagesCommand(a *app) *cobra.Command {
	var f imagesFlags
	cmd := &cobra.Command{
		Use:   "images [ID [IMAGE]]",
		Short: "List the images of a session, get one",
		Long: "Lists the images of a session, on all its branches. --search lists images, of one\n" +
			"session or of all, by words that were said with them or shortly before or after.\n\n" +
			"IMAGE is a number from the list, an entry, or the reference that a context shows in\n" +
			"place of an image it left out. The image goes to standard output, or with -o to a\n" +
			"file or directory; without IMAGE, -o DIR/ writes all of them. The page that coppice\n" +
			"export -o FILE.html writes shows them, too; its Images button hides everything else.",
		Example: "coppice images kyoto\ncoppice images kyoto 1 -o temple.png\ncoppice images --search 'login page'",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runImages(cmd.Context(), args, &f) },
	}
	cmd.Flags().StringVar(&f.search, "search", "", "only images near words that match `QUERY`")
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "write to `FILE`, or into the directory DIR/")
	cmd.Flags().BoolVar(&f.force, "force", false, "overwrite FILE")
	return a.withJSON(cmd)
}

// runImages finds out which of the three is meant: one image, files of all, or the list.
func (a *app) runImages(ctx context.Context, args []string, f *imagesFlags) error {
	if len(args) == 2 && f.search != "" {
		return misuse("--search is for lists; leave out IMAGE")
	}
	return a.withHome(ctx, false, func(h *home.Home) error {
		if len(args) == 2 {
			return a.getImage(ctx, h, home.ImageRequest{Session: args[0], Image: args[1], Path: f.out, Force: f.force})
		}
		r := home.ImagesRequest{Search: f.search, Session: strings.Join(args, "")}
		found, err := h.Entries.Images(ctx, r)
		switch {
		case err != nil:
			return err
		case f.out != "":
			return a.writeImages(ctx, h, found.Images, f)
		}
		return a.printImages(ctx, h, found, &r)
	})
}

// getImage prints an image, or writes it to a file.
func (a *app) getImage(ctx context.Context, h *home.Home, r home.ImageRequest) error {
	toOut := r.Path == "" || r.Path == "-"
	if toOut && a.screen != nil && !a.flags.json {
		return misuse("a terminal cannot show an image: -o FILE writes it to a file")
	}
	image, err := h.Entries.Image(ctx, r)
	if err != nil {
		return hintForce(err)
	}
	if toOut && !a.flags.json {
		_, err := a.data.Write(image.Data)
		return err
	}
	return a.done(image, image.Path, "wrote "+image.Path)
}

// writeImages writes images into a directory.
func (a *app) writeImages(ctx context.Context, h *home.Home, images []home.Image, f *imagesFlags) error {
	var order []string
	numbers := make(map[string][]int) // by session, so that each is read once
	for i := range images {
		id := images[i].Session
		if numbers[id] == nil {
			order = append(order, id)
		}
		numbers[id] = append(numbers[id], images[i].Number)
	}
	for _, id := range order {
		_, err := h.Entries.WriteImages(ctx, home.WriteImagesRequest{
			Session: id, Path: f.out, Force: f.force, Numbers: numbers[id],
		}, func(image home.ImageResult) error {
			if image.URL != "" {
				a.say("image %d is only a link: %s", image.Number, image.URL)
				return nil
			}
			return a.done(image, image.Path, "wrote "+image.Path)
		})
		if err != nil {
			return hintForce(err)
		}
	}
	return nil
}

// hintForce says what to do about a file that is there already.
func hintForce(err error) error {
	if home.KindOf(err) == home.KindExists {
		return hinted(err, "--force overwrites it")
	}
	return err
}

// printImages leaves the session out of a table that is about one session. That one session has
// no images is an answer; that none has is nothing found.
func (a *app) printImages(ctx context.Context, h *home.Home, found *home.ImagesResult, r *home.ImagesRequest) error {
	if a.flags.json {
		return printObjects(a, found.Images)
	}
	if len(found.Images) == 0 {
		a.say("no images")
		if r.Session == "" {
			return errNothingFound
		}
		return nil
	}
	sessions := []string{r.Session}
	if r.Session == "" {
		for i := range found.Images {
			sessions = append(sessions, found.Images[i].Session)
		}
		sessions = slices.Compact(sessions[1:]) // those of a session follow each other
	}
	short, err := a.listedNames(ctx, h, home.EntryNamesRequest{Sessions: sessions})
	if err != nil {
		return err
	}
	t := a.newTable("TEXT", "SESSION", ">N", "ENTRY", "TYPE", ">PIXELS", ">SIZE", "TEXT")
	for i := range found.Images {
		m := &found.Images[i]
		pixels := ""
		if m.Width > 0 {
			pixels = fmt.Sprintf("%dx%d", m.Width, m.Height)
		}
		size := strconv.Itoa(m.Bytes)
		switch {
		case m.URL != "":
			size = "link"
		case a.width() > 0:
			size = render.Bytes(int64(m.Bytes))
		}
		t.add(a.shownID(m.Session), strconv.Itoa(m.Number), short.Name(m.Entry), m.MediaType, pixels, size, render.OneLine(m.Text, 0))
	}
	if r.Session != "" {
		t.drop("SESSION")
	}
	return t.print()
}
