package session

import "errors"

// maxConflicts is how often Retry tries. Each time another writer got further,
// so even a busy log lets everybody through long before that; the limit is for a
// log that is not what it seems.
const maxConflicts = 1000

// Retry calls try until it returns something other than ErrConflict: nothing was
// written, because another writer was faster, and whatever try does can be done
// again. Before each further attempt catchUp is called, if it is not nil, so that
// try decides from what the other writer left; if catchUp fails, its error is
// returned. After very many conflicts Retry returns the last one.
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

// Retry calls try again after every conflict, with what others wrote taken in:
// see the function of that name. It is for appends that are right wherever the
// leaf is; to go on where you stopped instead, use GrowBranch.
func (s *Session) Retry(try func() error) error {
	return Retry(try, func() error {
		_, err := s.Refresh()
		return err
	})
}
