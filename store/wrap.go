package store

// Wrapper is the interface of a Store that adds something to another one, such as
// measurements. Without it, nobody finds the capabilities of the other one.
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
