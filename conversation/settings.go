package conversation

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Settings are the limits of a Sessions. They may be changed while it works: see
// Sessions.SetSettings.
type Settings struct {
	// Format is how sessions are stored. There is only FormatJSONL, which "json" means
	// too; any other is refused. Default: FormatJSONL.
	Format string
	// MaxMessagesPerSession is how many messages a session may have before the conversation
	// continues in another. Default: 5000.
	MaxMessagesPerSession int
	// MaxSessionsInMemory is how many sessions are kept open. Default: 20.
	MaxSessionsInMemory int
	// MaxBytesInMemory is roughly how much memory the messages of open sessions may take.
	// Default: 256 MiB.
	MaxBytesInMemory int64
	// AutoSaveInterval is how often the background save checks that everything is stored.
	// Negative means never. Default: 60 s.
	AutoSaveInterval time.Duration
}

// FormatJSONL is how sessions are stored: one line of JSON per entry, so that adding a
// message does not rewrite all of them.
const FormatJSONL = "jsonl"

// DefaultSettings are used in place of zero values.
var DefaultSettings = Settings{
	Format:                FormatJSONL,
	MaxMessagesPerSession: 5000,
	MaxSessionsInMemory:   20,
	MaxBytesInMemory:      256 << 20,
	AutoSaveInterval:      60 * time.Second,
}

// withDefaults fills in what is zero and refuses what makes no sense.
func (s Settings) withDefaults() (Settings, error) {
	switch s.Format {
	case "", "json", FormatJSONL:
		s.Format = FormatJSONL
	default:
		return s, fmt.Errorf("settings: %w: the format is %.40q; it must be %q (export sessions to get another format)", session.ErrInvalid, s.Format, FormatJSONL)
	}
	if s.MaxMessagesPerSession == 0 {
		s.MaxMessagesPerSession = DefaultSettings.MaxMessagesPerSession
	}
	if s.MaxSessionsInMemory == 0 {
		s.MaxSessionsInMemory = DefaultSettings.MaxSessionsInMemory
	}
	if s.MaxBytesInMemory == 0 {
		s.MaxBytesInMemory = DefaultSettings.MaxBytesInMemory
	}
	if s.AutoSaveInterval == 0 {
		s.AutoSaveInterval = DefaultSettings.AutoSaveInterval
	}
	if s.MaxMessagesPerSession < 0 || s.MaxSessionsInMemory < 0 || s.MaxBytesInMemory < 0 {
		return s, fmt.Errorf("settings: %w: a limit is negative in %+v", session.ErrInvalid, s)
	}
	return s, nil
}

// settingsYAML is our part of a configuration file.
type settingsYAML struct {
	Sessions struct {
		Format                string   `yaml:"format"`
		MaxMessagesPerSession int      `yaml:"max_messages_per_session"`
		MaxSessionsInMemory   int      `yaml:"max_sessions_in_memory"`
		MaxBytesInMemory      int64    `yaml:"max_bytes_in_memory"`
		AutoSaveInterval      *float64 `yaml:"auto_save_interval"` // in seconds; 0 turns it off
	} `yaml:"sessions"`
}

// LoadSettings reads the section "sessions" of a config.yml. What is missing there, or
// all of it if there is no such file, gets the default. Other sections are ignored.
func LoadSettings(path string) (Settings, error) {
	raw, err := vfs.ReadFile(path, vfs.SmallFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Settings{}, err
	}
	var y settingsYAML
	if err := yaml.Unmarshal(raw, &y); err != nil {
		return Settings{}, fmt.Errorf("settings in %s: %w: %w", path, session.ErrInvalid, err)
	}
	s := Settings{
		Format:                y.Sessions.Format,
		MaxMessagesPerSession: y.Sessions.MaxMessagesPerSession,
		MaxSessionsInMemory:   y.Sessions.MaxSessionsInMemory,
		MaxBytesInMemory:      y.Sessions.MaxBytesInMemory,
	}
	if seconds := y.Sessions.AutoSaveInterval; seconds != nil {
		s.AutoSaveInterval = time.Duration(*seconds * float64(time.Second))
		if s.AutoSaveInterval <= 0 {
			s.AutoSaveInterval = -1
		}
	}
	if s, err = s.withDefaults(); err != nil {
		return Settings{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Options adjusts a Sessions. The zero value is what most programs want.
type Options struct {
	Settings Settings
	// Index says which sessions a list has. Default: the logs say so, which takes longer.
	Index Index
	// OnTransition is called when a conversation continues in another session, so that you can
	// clean up what belongs to the old one. It is called before the method that caused the
	// transition returns. It may call anything except a turn (Process, Retry) of the same
	// conversation, which would wait for itself. Default: none.
	OnTransition func(Transition)
	// OnSaveError is called with what went wrong in the background. Default: none; see also
	// Sessions.SaveError.
	OnSaveError func(error)
	// UnderPressure reports whether memory is short. Sessions are then closed until those that
	// remain take half of what is allowed. Default: when the heap is above nine tenths of its
	// limit (GOMEMLIMIT).
	UnderPressure func() bool
	// Logger gets a line for damage, recoveries and transitions. Default: none.
	Logger *slog.Logger
}

// Transition reports that a conversation continues in another session.
type Transition struct {
	Conversation string // the id of the original session
	From, To     string // the ids of the sessions
	Index        int    // the number of continuations since the original
}

func (o *Options) withDefaults() (Options, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.OnTransition == nil {
		opts.OnTransition = func(Transition) {}
	}
	if opts.OnSaveError == nil {
		opts.OnSaveError = func(error) {}
	}
	if opts.UnderPressure == nil {
		opts.UnderPressure = heapNearLimit
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	opts.Settings, err = opts.Settings.withDefaults()
	return opts, err
}

// heapNearLimit reports whether the heap is above nine tenths of its limit, if there is one.
func heapNearLimit() bool {
	limit := debug.SetMemoryLimit(-1) // a negative limit only asks
	if limit == math.MaxInt64 {
		return false
	}
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Kind() == metrics.KindUint64 && sample[0].Value.Uint64() > uint64(limit)/10*9
}
