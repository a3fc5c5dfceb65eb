package home

// Streamed is the result of an operation whose answer is its events.
type Streamed struct {
	Events int `json:"events"` // how many there were
}

// counted finds what a result counts.
func (s *Streamed) counted() *Streamed { return s }

// pass sends an event, if there is a listener, and counts it.
func pass[E any](s *Streamed, send func(E) error, event E) error {
	if send != nil {
		if err := send(event); err != nil {
			return err
		}
	}
	s.Events++
	return nil
}
