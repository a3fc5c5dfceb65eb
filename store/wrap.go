package store

// Wrapper is the interface of a Store that adds something to another one, such as
// measurements. Without it, As does not find the capabilities of the other one.
//
// To see every line that is written, wrap the three methods that return a Log for writing
// (Open, Create and CreateCopy; the lines of the latter two are written as they return), of
// that Log both Append and Start (a session uses Start, which does not call Append), and Batch,
// with which an import creates logs.
type Wrapper interface {
	// Unwrap returns the other store.
	Unwrap() Store
}

// As returns a capability of a store: that of the store itself or else of a store that it
// wraps. T may also be a type of store.
func As[T any](s Store) (T, bool) {
	for {
		if t, ok := s.(T); ok {
			return t, true
		}
		w, ok := s.(Wrapper)
		if !ok {
			var none T
			return none, false
		}
		s = w.Unwrap()
	}
}
