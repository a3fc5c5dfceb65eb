// Package walk goes over what a source yields: rows, documents, lines.
package walk

import "iter"

// Each calls a function with everything that a source yields, until the source or the
// function returns an error, which Each returns too.
func Each[T any](source iter.Seq2[T, error], do func(T) error) error {
	for v, err := range source {
		if err == nil {
			err = do(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
