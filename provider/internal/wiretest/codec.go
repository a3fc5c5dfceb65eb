package wiretest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// Codec is a wire format under test.
type Codec struct {
	Decode         func(data []byte) (*provider.Body, error)
	Encode         func(entries []session.Entry) (*provider.Messages, error)
	EncodeResponse func(answers ...session.Entry) (json.RawMessage, []provider.Note, error)
	// List is the member of a request that holds the messages.
	List string
}

// RoundTrip decodes a body, sends it through a log, and encodes it again. It
// returns an error if the body does not come back with equal values, without
// notes, and with the bytes that it would have without the log.
func (c Codec) RoundTrip(body []byte) (*provider.Body, error) {
	decoded, err := c.Decode(body)
	if err != nil {
		return nil, err
	}
	direct, err := c.again(decoded, decoded.Entries, decoded.Alternatives)
	if err != nil {
		return nil, err
	}
	entries, err := ThroughLog(decoded.Entries)
	if err != nil {
		return nil, err
	}
	logged, err := c.again(decoded, entries, decoded.Alternatives)
	if err != nil {
		return nil, err
	}
	if diff := Diff(body, logged); diff != "" {
		return nil, fmt.Errorf("%s came back otherwise (-want +got):\n%s", body, diff)
	}
	if !bytes.Equal(direct, logged) {
		return nil, fmt.Errorf("the log changed the bytes:\n%s\n%s", direct, logged)
	}
	return decoded, nil
}

// again encodes what a body decoded to as the same kind of body.
func (c Codec) again(b *provider.Body, entries []session.Entry, others [][]session.Entry) ([]byte, error) {
	if b.Kind == provider.KindResponse {
		for _, other := range others {
			entries = append(entries[:len(entries):len(entries)], other...)
		}
		raw, notes, err := c.EncodeResponse(entries...)
		if len(notes) > 0 {
			err = fmt.Errorf("notes on what came from the same format: %v", notes)
		}
		return raw, err
	}
	m, err := c.Encode(entries)
	if err != nil {
		return nil, err
	}
	if len(m.Notes) > 0 {
		return nil, fmt.Errorf("notes on what came from the same format: %v", m.Notes)
	}
	return c.unwrap(b, m)
}

// unwrap returns the part of a request that a body of a kind is.
func (c Codec) unwrap(b *provider.Body, m *provider.Messages) ([]byte, error) {
	request := m.Request(b.Fields)
	if b.Kind == provider.KindRequest {
		return request, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(request, &fields); err != nil {
		return nil, err
	}
	if b.Kind == provider.KindMessages {
		return fields[c.List], nil
	}
	var one []json.RawMessage
	if err := json.Unmarshal(fields[c.List], &one); err != nil || len(one) != 1 {
		return nil, fmt.Errorf("want one message, got %s, %w", fields[c.List], err)
	}
	return one[0], nil
}
