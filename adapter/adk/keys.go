package adk

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// keyPrefix is the prefix of our sessions' keys. The parts follow, escaped so that none has a
// slash: the app; for the state of a user, the user; for a session, its id. So no two
// sessions have the same key, whatever characters their names contain.
const keyPrefix = "adk:"

func keyOf(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, p := range parts {
		escaped[i] = url.PathEscape(p)
	}
	return keyPrefix + strings.Join(escaped, "/")
}

// partsOf returns the parts that keyOf made a key from.
func partsOf(key string) ([]string, error) {
	rest, ok := strings.CutPrefix(key, keyPrefix)
	if !ok {
		return nil, fmt.Errorf("%.80q is not a key of an ADK session: %w", key, session.ErrInvalid)
	}
	parts := strings.Split(rest, "/")
	for i, p := range parts {
		plain, err := url.PathUnescape(p)
		if err != nil {
			return nil, fmt.Errorf("key %.80q: %w: %w", key, session.ErrInvalid, err)
		}
		parts[i] = plain
	}
	return parts, nil
}

// place is where a session is kept: its key, and its name in the store.
type place struct {
	app, user, id string
	key, name     string
}

// err returns an error about the session that names it as ADK does.
func (p place) err(why error) error {
	return fmt.Errorf("session %q of user %q in app %q: %w", p.id, p.user, p.app, why)
}

// placeOf returns the place of a session. All three parts are required.
func placeOf(app, user, id string) (place, error) {
	if app == "" || user == "" || id == "" {
		return place{}, fmt.Errorf("an app name, a user id and a session id are required, got %q, %q and %q: %w", app, user, id, session.ErrInvalid)
	}
	p := place{app: app, user: user, id: id, key: keyOf(app, user, id)}
	own, err := session.KeyID(p.key)
	if err != nil {
		return place{}, err
	}
	tail, err := tailOf(app, user)
	p.name = own + tail
	return p, err
}

// SessionName returns the name of a session in its store, for programs that open it with
// Coppice (see session.Open).
func SessionName(app, user, id string) (string, error) {
	p, err := placeOf(app, user, id)
	return p.name, err
}

// tailOf returns the end of the names of a user's sessions, or of all users of an app if the
// user is "". List finds sessions by it without opening the others. It is short, so two users
// may share one, and List checks the keys too.
func tailOf(app, user string) (string, error) {
	const short = 8
	ofApp, err := session.KeyID(keyOf(app))
	if err != nil {
		return "", err
	}
	if user == "" {
		return "-" + ofApp[:short], nil
	}
	ofUser, err := session.KeyID(keyOf(app, user))
	return "-" + ofUser[:min(short, len(ofUser))] + "-" + ofApp[:short], err
}

// sharedHeader returns the header of a session with shared state: of an app, or of an app
// and a user.
func sharedHeader(parts []string) (h session.Header, err error) {
	h.Key = keyOf(parts...)
	h.Extra = session.Fields{agentField}
	h.ID, err = session.KeyID(h.Key)
	return h, err
}
