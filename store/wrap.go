package store

// Wrapper is the interface of a Store that adds something to another one, such as
// measurements. Without it, nobody finds out what the other one can do beyond Store: that it
// has files, and a list of secrets that must not come back.
type Wrapper interface {
	// Unwrap returns the other store.
	Unwrap() Store
}

// As returns a store as something that it, or a store that it wraps, is.
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
