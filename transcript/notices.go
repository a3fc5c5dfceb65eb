package transcript

import (
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// NoticeKind is the ending of the custom types of notices: messages that a program gives
// the model beside the conversation, such as the output of hooks. Only that program can
// send them again.
const NoticeKind = ".attachment"

func isNotice(e *session.Entry) bool {
	return e.Custom != nil && strings.HasSuffix(e.Custom.CustomType, NoticeKind)
}

// lostNotices returns the loss of the notices of the path that were not read back, except
// those that a writer announced itself.
func (s *Script) lostNotices(read *Collected, announced []Loss) []Loss {
	for _, c := range read.Conversations {
		if slices.ContainsFunc(c.Records, func(r Record) bool { return isNotice(&r.Entry) }) {
			return nil // the format holds them
		}
	}
	var losses []Loss
	for i := range s.Path {
		e := &s.Path[i]
		if isNotice(e) && !slices.ContainsFunc(announced, func(l Loss) bool { return l.EntryID == e.ID }) {
			losses = append(losses, Loss{EntryID: e.ID, What: "notice", Why: "only the program that sent it to the model, as hooks do, can send it again"})
		}
	}
	return losses
}
