package conversation

import "log/slog"

// The names used in the documents that this package implements. They are the same things
// under longer names, so that programs written against those documents compile unchanged.
type (
	SessionManager       = Sessions
	ConversationManager  = Manager
	ConversationSystem   = Chat
	ContextWindowManager = Window
	ContextLoader        = Loader
	SessionMetadata      = Info
	MessageCategory      = Category
)

// NewSessionManager is OpenSessions.
func NewSessionManager(basePath string, o *Options) (*SessionManager, error) {
	return OpenSessions(basePath, o)
}

// NewConversationManager is Open.
func NewConversationManager(basePath string, o *ManagerOptions) (*ConversationManager, error) {
	return Open(basePath, o)
}

// NewConversationSystem is NewChat.
func NewConversationSystem(s *SessionManager, w *ContextWindowManager) *ConversationSystem {
	return NewChat(s, w)
}

// NewContextWindowManager is NewWindow.
func NewContextWindowManager(logger *slog.Logger) *ContextWindowManager { return NewWindow(logger) }

// NewContextLoader is NewLoader.
func NewContextLoader(dir string) (*ContextLoader, error) { return NewLoader(dir) }

// GetHistory is History.
func (c *Chat) GetHistory() ([]APIMessage, error) { return c.History() }
