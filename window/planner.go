package window

import (
	"log/slog"

	"github.com/coppice-dev/coppice/session"
)

// Options says what a view is to be like.
type Options struct {
	Budget Budget
	// Counter counts. Default: what Chooser picks for Provider and Model.
	Counter Counter
	// Provider and Model are who is to read the view. Default: those in force in
	// the context.
	Provider, Model string
	// Images is how many images are kept, the newest first; the others become
	// placeholders. Default: 1. See AllImages and NoImages.
	Images int
	// Logger is told at debug level which counter was chosen. Default: none.
	Logger *slog.Logger
}

// Values of Options.Images.
const (
	AllImages = -1
	NoImages  = -2
)

// Trim returns what of a context fits a window. It is a pure function: the same
// entries and options give the same view, and so does a Planner that saw the
// entries one by one.
func Trim(c *session.Context, o Options) (*View, error) { panic("soon") }

// Planner keeps the view of a conversation that grows. Adding an entry costs
// the same however long the conversation is.
type Planner struct{}

// NewPlanner returns a planner of an empty conversation. It returns an error
// that matches session.ErrInvalid if the options make no sense.
func NewPlanner(o Options) (*Planner, error) { panic("soon") }

// Add takes the next entries of the conversation into account.
func (p *Planner) Add(entries ...session.Entry) { panic("soon") }

// Update makes the planner's conversation a context: it adds what is new or, if
// what was there has changed, or another model is in force, begins again. It
// returns the view, as View does.
func (p *Planner) Update(c *session.Context) (*View, error) { panic("soon") }

// View returns what fits the window now. It returns an *OverflowError if the
// SYSTEM messages or the newest group alone do not.
func (p *Planner) View() (*View, error) { panic("soon") }
