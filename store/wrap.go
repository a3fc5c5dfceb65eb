package store

// Wrapper is the interface of a Store that adds something to another one, such as
// measurements. Without it, callers could not see what the other one has beyond Store: its
// files, and a list of secrets that must not come back.
type Wrapper interface {
	// Unwrap returns the other store.
	Unwrap() Store
}

// As returns a store, or a store that it wraps, as a T.
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
