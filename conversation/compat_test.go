package conversation_test

import (
	"log/slog"

	"github.com/coppice-dev/coppice/conversation"
)

// Programs that were written against the documents which this package implements
// compile: each of their names is here, with what it takes and returns.
var (
	_ func(string, *conversation.Options) (*conversation.SessionManager, error)                                                       = conversation.NewSessionManager
	_ func(string, *conversation.ManagerOptions) (*conversation.ConversationManager, error)                                           = conversation.NewConversationManager
	_ func(*conversation.SessionManager, *conversation.ContextWindowManager) *conversation.ConversationSystem                         = conversation.NewConversationSystem
	_ func(*slog.Logger) *conversation.ContextWindowManager                                                                           = conversation.NewContextWindowManager
	_ func(string) (*conversation.ContextLoader, error)                                                                               = conversation.NewContextLoader
	_ func(*conversation.SessionManager, string) (conversation.Session, error)                                                        = (*conversation.SessionManager).CreateSession
	_ func(*conversation.SessionManager, string) (conversation.Session, error)                                                        = (*conversation.SessionManager).LoadSession
	_ func(*conversation.SessionManager, conversation.Session) (bool, error)                                                          = (*conversation.SessionManager).SaveSession
	_ func(*conversation.SessionManager, conversation.Session) bool                                                                   = (*conversation.SessionManager).CheckSessionBoundary
	_ func(*conversation.SessionManager, conversation.Session) (conversation.Session, error)                                          = (*conversation.SessionManager).CreateContinuationSession
	_ func(*conversation.SessionManager, int, int) ([]conversation.SessionMetadata, error)                                            = (*conversation.SessionManager).ListSessions
	_ func(*conversation.SessionManager, string) (bool, error)                                                                        = (*conversation.SessionManager).DeleteSession
	_ func(*conversation.ConversationSystem, string, any, conversation.MessageCategory, map[string]any) (conversation.Message, error) = (*conversation.ConversationSystem).AddMessage
	_ func(*conversation.ConversationSystem, string, ...string) (conversation.Message, error)                                         = (*conversation.ConversationSystem).PrepareConversation
	_ func(*conversation.ConversationSystem) ([]conversation.APIMessage, error)                                                       = (*conversation.ConversationSystem).GetHistory
	_ func(*conversation.ContextLoader, *conversation.ConversationSystem) ([]conversation.Message, error)                             = (*conversation.ContextLoader).LoadCoreContext

	_ = []conversation.MessageCategory{conversation.CategorySystem, conversation.CategoryContext, conversation.CategoryDialog, conversation.CategorySystemOutput}
)
