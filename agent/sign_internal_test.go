package agent

import "github.com/coppice-dev/coppice/session"

// RecordCalls records the calls of a message at the end of a session as an agent would that had
// asked the model.
func RecordCalls(s *session.Session, message string) error {
	k, err := newKeeper(s, KeeperOptions{})
	if err != nil {
		return err
	}
	e, err := k.s.Entry(message)
	if err != nil {
		return err
	}
	proofs, err := k.made(k.callsOf(&e))
	if err == nil {
		_, err = s.AppendEntry((&Record{Response: message, Signed: proofs}).entry())
	}
	return err
}

// QueuedEntry returns the entry with which an agent of a session queues something.
func QueuedEntry(s *session.Session, content ...session.Content) (session.Entry, error) {
	return queuedEntry(s, session.Queued{Content: content})
}

// FollowUpEntry is QueuedEntry for what waits until the model is done.
func FollowUpEntry(s *session.Session, content ...session.Content) (session.Entry, error) {
	return queuedEntry(s, session.Queued{Content: content, After: true})
}

func queuedEntry(s *session.Session, q session.Queued) (session.Entry, error) {
	k, err := newKeeper(s, KeeperOptions{})
	if err != nil {
		return session.Entry{}, err
	}
	q.Session = k.log.ID()
	return k.signed(&q)
}
