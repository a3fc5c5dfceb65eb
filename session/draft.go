package session

import (
	"slices"
	"strings"
)

// draftText is the data member of a draft: the text that arrived since the one before it.
const draftText = "text"

// NewDraft returns an entry with the next piece of an answer that is still arriving.
func NewDraft(text string) Entry {
	return Custom(CustomDraft, map[string]any{draftText: text})
}

// DraftText returns the piece that a draft has. ok is false for any other entry.
func (e *Entry) DraftText() (text string, ok bool) {
	if e.Custom == nil || e.Custom.CustomType != CustomDraft {
		return "", false
	}
	text, _ = e.Custom.Data[draftText].(string)
	return text, true
}

// DraftAt returns the text of the drafts that the path to an entry of a session ends with,
// and the entry before them, at which the model was asked. Notes after the drafts do not
// count: see Entry.IsAside. Without drafts, the text is "" and the entry is the one that was
// given.
func DraftAt(s *Session, id string) (text, askedAt string, _ error) {
	var pieces []string
	at := id
	for at != "" {
		found, err := s.Peek(at)
		if err != nil {
			return "", "", err
		}
		e := &found[0]
		piece, isDraft := e.DraftText()
		isQueue := e.Custom != nil && e.Custom.CustomType == CustomQueued // in the middle of an answer, too
		if isDraft {
			pieces = append(pieces, piece)
		} else if len(pieces) > 0 && !isQueue || !e.IsAside() {
			break
		}
		at = ""
		if e.ParentID != nil {
			at = *e.ParentID
		}
	}
	if len(pieces) == 0 {
		return "", id, nil
	}
	slices.Reverse(pieces)
	return strings.Join(pieces, ""), at, nil
}

// StopDraft is the stop reason of the message that readers are shown instead of the drafts of
// an unfinished answer. The answer may still be arriving, or its program has died.
const StopDraft = "draft"

// Drafted returns the message that readers are shown instead of drafts: e is the last of
// them, and text is that of all.
func (e Entry) Drafted(text string) Entry {
	e.Type, e.Custom = TypeMessage, nil
	e.Message = &MessageEntry{Role: RoleAssistant, Content: []Content{Text(text)}, StopReason: StopDraft}
	return e
}

// showDrafts returns a path on which the last draft of each answer that was never completed
// is a message with the text of all drafts of that answer. No message of the model follows
// them.
func showDrafts(path []Entry) []Entry {
	shown, text, last := path, "", -1
	settle := func() {
		if last >= 0 && strings.TrimSpace(text) != "" {
			if &shown[0] == &path[0] {
				shown = slices.Clone(path)
			}
			shown[last] = path[last].Drafted(text)
		}
		text, last = "", -1
	}
	for i := range path {
		e := &path[i]
		if piece, isDraft := e.DraftText(); isDraft {
			text, last = text+piece, i
			continue
		}
		if e.Message != nil && e.Message.Role == RoleAssistant {
			text, last = "", -1
		} else if !e.IsAside() {
			settle()
		}
	}
	settle()
	return shown
}
