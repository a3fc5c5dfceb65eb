package session

import "errors"

// maxConflicts is how often Retry tries. Every conflict means that another writer made
// progress, so even on a busy log every writer gets through long before that. The limit
// is for a log that misbehaves.
const maxConflicts = 1000

// Retry calls try until it returns something other than ErrConflict. A conflict means that
// another writer was faster and nothing was written, so try can simply run again. Before
// each further attempt Retry calls catchUp, if it is not nil, so that try decides from
// what the other writer left. If catchUp returns an error, Retry returns it. After very
// many conflicts Retry returns the last one.
func Retry(try, catchUp func() error) error {
	for n := 1; ; n++ {
		err := try()
		if !errors.Is(err, ErrConflict) || n == maxConflicts {
			return err
		}
		if catchUp == nil {
			continue
		}
		if err := catchUp(); err != nil {
			return err
		}
	}
}
