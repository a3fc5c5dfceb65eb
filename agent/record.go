package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// Record is what the log says about a request: enough to build it again, byte for byte,
// and to explain a miss in the provider's cache.
type Record struct {
	ID   string    `json:"-"` // the entry that has the record
	Time time.Time `json:"-"`
	// Leaf is the last entry of the conversation that was sent, and Response the
	// message that answered it; "" if none is kept.
	Leaf     string `json:"leaf,omitempty"`
	Response string `json:"response,omitempty"`
	// Asked is the entry that announced the request. It was written first, so a request
	// without a record can be found: see Records.
	Asked string `json:"asked,omitempty"`
	// Signed proves, by the ids of the calls in the response, that an agent of this store
	// recorded them: only then may they run later.
	Signed map[string]string `json:"signed,omitempty"`
	// For says what a request outside the conversation was for: "summary", "branch", "title",
	// or "probe" for one that finds out what a provider refuses. For such a request, only the
	// model, the size, the time and the error are known.
	For string `json:"for,omitempty"`
	// Session is the session id that the provider got: see provider.Request. A copy of the
	// session has another id.
	Session string `json:"session,omitempty"`
	// Provider and Model were asked, through API: see provider.Info.
	Provider string `json:"provider"`
	Model    string `json:"model"`
	API      string `json:"api,omitempty"`
	// Tools is the entry with the tools that were offered; "" if there were none.
	Tools       string          `json:"tools,omitempty"`
	Thinking    string          `json:"thinking,omitempty"`
	MaxTokens   int             `json:"max_tokens,omitempty"`
	Temperature *float64        `json:"temperature,omitempty"`
	NoCache     bool            `json:"no_cache,omitempty"`
	Fields      []RecordedField `json:"fields,omitempty"`
	// Without are the parameters that were left out, because the model had refused them.
	Without []string `json:"without,omitempty"`
	// Entries is how many entries were sent, and Fingerprint is that of the last.
	Entries     int    `json:"entries,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
	// Sum is the SHA-256 of the body, and Bytes its size.
	Sum   string `json:"sha256,omitempty"`
	Bytes int    `json:"bytes,omitempty"`
	// Took is how long the answer took, in milliseconds.
	Took int64 `json:"ms"`
	// Error is why there is no whole answer, or "".
	Error string `json:"error,omitempty"`
}

// RecordedField is a further member of a request: see provider.Request. Its value is
// kept as text, because the order of its members matters.
type RecordedField struct {
	Name string `json:"name"`
	JSON string `json:"json"`
}

// asking returns the entry that says that the model is asked next.
func (k *Keeper) asking() session.Entry {
	info := k.opts.Model
	return session.Custom(session.CustomAsking, map[string]any{"session": k.s.ID(), "provider": info.Provider, "model": info.Model})
}

// announce records that the model is asked next, unless the log says so already.
func (k *Keeper) announce() error {
	if k.announced != "" {
		return nil
	}
	ids, err := k.append(k.asking())
	if err == nil {
		k.announced = ids[0]
	}
	return err
}

// newRecord returns the facts about the announced request.
func (k *Keeper) newRecord() *Record {
	info := k.opts.Model
	r := &Record{Asked: k.announced, Provider: info.Provider, Model: info.Model, API: info.API, Tools: k.recorded.tools}
	k.announced = ""
	return r
}

// entry returns the entry that has a record.
func (r *Record) entry() session.Entry {
	return session.Custom(session.CustomRequest, dataOf(r))
}

// recordOf returns the entry that records a request.
func (k *Keeper) recordOf(r *request, response string, cause error, proofs map[string]string) session.Entry {
	record := k.newRecord()
	record.Signed = proofs
	record.Leaf, record.Response, record.Session = r.leaf, response, r.Session
	record.Thinking, record.MaxTokens, record.Temperature, record.NoCache = r.Thinking, r.MaxTokens, r.Temperature, r.NoCache
	record.Entries, record.Sum, record.Bytes, record.Took = len(r.Entries), r.sum, r.bytes, time.Since(r.begun).Milliseconds()
	if r.Encoded != nil {
		record.Without = r.Encoded.Without
	}
	if n := len(r.c.Fingerprints); n > 0 {
		record.Fingerprint = r.c.Fingerprints[n-1].String()
	}
	for _, f := range r.Fields {
		record.Fields = append(record.Fields, RecordedField{f.Name, string(f.Value)})
	}
	if cause != nil {
		record.Error = k.whyEnded(cause).Error()
	}
	return record.entry()
}

// dataOf returns a value as the data of a custom entry.
func dataOf(v any) map[string]any {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // only our own types come here, and they encode
	}
	var data map[string]any
	if err := json.Unmarshal(text, &data); err != nil {
		panic(err)
	}
	return data
}

// offer is the data of an entry of type session.CustomTools.
type offer struct {
	Tools []offeredTool `json:"tools"`
}

// offeredTool is a tool as it was offered. The schema is kept as text, because the
// order of its members matters.
type offeredTool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Schema      string `json:"schema,omitempty"`
}

func offerOf(tools []provider.Tool) offer {
	var o offer
	for i := range tools {
		o.Tools = append(o.Tools, offeredTool{tools[i].Name, tools[i].Description, string(tools[i].Schema)})
	}
	return o
}

// recordTools records which tools are offered, unless the log says so already.
func (k *Keeper) recordTools() error {
	if len(k.opts.Tools) == 0 {
		k.recorded.tools, k.recorded.toolsSum = "", ""
		return nil
	}
	if k.offer == nil { // the tools do not change during a turn
		k.offer = dataOf(offerOf(k.opts.Tools))
		k.offerSum = fmt.Sprint(k.offer)
	}
	data, sum := k.offer, k.offerSum
	if k.recorded.tools == "" {
		if err := k.findTools(); err != nil {
			return err
		}
	}
	if k.recorded.tools != "" && k.recorded.toolsSum == sum {
		return nil
	}
	key, err := k.key(true)
	if err != nil {
		return err
	}
	e := session.Custom(session.CustomTools, maps.Clone(data))
	e.ID = session.NewID()
	e.Custom.Data["signed"] = k.sign(key, session.CustomTools, e.ID, sum)
	ids, err := k.append(e)
	if err == nil {
		k.recorded.tools, k.recorded.toolsSum = ids[0], sum
	}
	return err
}

// findTools finds the tools that an earlier agent recorded, if its last request is not
// far back: a program that opens a session repeatedly should not record them each time.
func (k *Keeper) findTools() error {
	r, err := k.lastRecord(func(*session.Entry) bool { return false })
	if err != nil || r == nil || r.Tools == "" {
		return err
	}
	e, err := k.s.Entry(r.Tools)
	if err != nil || e.Custom == nil {
		return nil // the entry is elsewhere or damaged: record the tools again
	}
	k.recorded.tools, k.recorded.toolsSum = e.ID, fmt.Sprint(e.Unsigned().Custom.Data)
	return nil
}

// OfferedHere reports whether an agent of the session's store has recorded, in this conversation,
// what an entry of type session.CustomTools says: see sign.go.
func OfferedHere(s *session.Session, e *session.Entry) bool {
	if e.Custom == nil || e.Custom.CustomType != session.CustomTools {
		return false
	}
	k := &Keeper{log: s, s: s}
	key, err := k.key(false)
	proof, _ := e.Custom.Data["signed"].(string)
	return err == nil && key != nil && isProof(proof, k.sign(key, session.CustomTools, e.ID, fmt.Sprint(e.Unsigned().Custom.Data)))
}

// maxLookBack is how many entries lastRecord looks at.
const maxLookBack = 64

// lastRecord returns the record of the last request of the conversation, or nil if there
// is none near, or none after an entry at which to stop.
func (k *Keeper) lastRecord(stop func(*session.Entry) bool) (*Record, error) {
	id := k.s.LeafID()
	for n := 0; n < maxLookBack && id != ""; n++ {
		found, err := k.s.Peek(id)
		if err != nil {
			return nil, err
		}
		e := &found[0]
		if r, ok := ReadRecord(e); ok && r.For == "" {
			return &r, nil
		}
		if stop(e) {
			break
		}
		id = parentOf(e)
	}
	return nil, nil
}

func parentOf(e *session.Entry) string {
	if e.ParentID == nil {
		return ""
	}
	return *e.ParentID
}

// ReadRecord returns what an entry says about a request; ok is false if it is not a
// record.
func ReadRecord(e *session.Entry) (r Record, ok bool) { return readAs(e, session.CustomRequest) }

// readAs reads the record of a request from a custom entry of some type.
func readAs(e *session.Entry, customType string) (r Record, ok bool) {
	if e.Custom == nil || e.Custom.CustomType != customType {
		return r, false
	}
	text, err := json.Marshal(e.Custom.Data)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	r.ID, r.Time = e.ID, e.Timestamp
	return r, err == nil
}

// Records yields the records of a session's requests, oldest first, on all branches. Last
// come requests without a record: those that are under way, or were when their program was
// killed. Their Error says that their cost is not known.
func Records(s *session.Session) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		var open []Record // announced, and without a record so far
		for e, err := range s.Entries() {
			if err != nil {
				yield(Record{}, err)
				return
			}
			r, ok := readAs(&e, session.CustomAsking)
			if ok {
				if r.Session == "" || r.Session == s.ID() || r.Session == s.SessionOf(e.ID) { // a copy may lack the answer
					r.Asked, r.Error = e.ID, unknown
					open = append(open, r)
				}
				continue
			}
			if r, ok = ReadRecord(&e); !ok {
				continue
			}
			open = slices.DeleteFunc(open, func(o Record) bool { return o.Asked == r.Asked })
			if !yield(r, nil) {
				return
			}
		}
		for _, r := range open {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// unknown is the error of a request that has no record.
const unknown = "it is under way, or the program ended before it recorded the answer; what it cost is not known"

// Request returns the request that a record is about, as the log has it.
func (r *Record) Request(s *session.Session) (*provider.Request, error) {
	c, err := s.Context(session.ContextOptions{Leaf: r.Leaf})
	if err != nil {
		return nil, err
	}
	request := &provider.Request{
		Entries: c.Entries, Session: cmp.Or(r.Session, s.ID()), Thinking: r.Thinking,
		MaxTokens: r.MaxTokens, Temperature: r.Temperature, NoCache: r.NoCache, Without: r.Without,
	}
	for _, f := range r.Fields {
		request.Fields = append(request.Fields, session.Field{Name: f.Name, Value: json.RawMessage(f.JSON)})
	}
	if r.Tools != "" {
		e, err := s.Entry(r.Tools)
		if err != nil {
			return nil, err
		}
		if request.Tools, err = toolsIn(&e); err != nil {
			return nil, err
		}
	}
	return request, nil
}

// toolsIn returns the tools that an entry says were offered.
func toolsIn(e *session.Entry) ([]provider.Tool, error) {
	if e.Custom == nil || e.Custom.CustomType != session.CustomTools {
		return nil, &session.Error{Op: "read", Kind: session.ErrInvalid, Err: fmt.Errorf("entry %s has no tools", e.ID)}
	}
	var list offer
	text, err := json.Marshal(e.Custom.Data)
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	tools := make([]provider.Tool, len(list.Tools))
	for i, o := range list.Tools {
		tools[i] = provider.Tool{Name: o.Name, Description: o.Description, Schema: json.RawMessage(o.Schema)}
	}
	return tools, err
}

// Rebuild encodes the request of a record again. same reports whether the bytes are
// those that were sent. The model must be the one that was asked, or one that encodes
// like it; it is not asked.
func (r *Record) Rebuild(s *session.Session, m provider.Model) (body []byte, same bool, err error) {
	request, err := r.Request(s)
	if err != nil {
		return nil, false, err
	}
	encoded, err := m.Encode(request)
	if err != nil {
		return nil, false, err
	}
	return encoded.Body, encoded.Sum() == r.Sum, nil
}
