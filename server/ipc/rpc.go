package ipc

import (
	"context"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/creachadair/jrpc2"

	"github.com/coppice-dev/coppice/home"
)

// maxBatch is how many requests a batch may have: its answers are collected before they are
// sent.
const maxBatch = 100

// cancelMethod cancels a request of the same connection, as in the Language Server Protocol.
const cancelMethod = "$/cancelRequest"

// codes are the error codes of JSON-RPC. They never change.
var codes = map[home.Kind]jrpc2.Code{
	home.KindInvalid:      jrpc2.InvalidParams,
	home.KindError:        -32000,
	home.KindPartial:      -32001,
	home.KindNotFound:     -32002,
	home.KindExists:       -32003,
	home.KindTooLarge:     -32004,
	home.KindLocked:       -32005,
	home.KindCorrupt:      -32006,
	home.KindConflict:     -32007,
	home.KindInterrupted:  -32008,
	home.KindDenied:       -32009,
	home.KindLimited:      -32010,
	home.KindOverflow:     -32011,
	home.KindUnavailable:  -32012,
	home.KindRefused:      -32013,
	home.KindForbidden:    -32014,
	home.KindNoSpace:      -32015,
	home.KindUnauthorized: -32016,
	home.KindUnknown:      -32017,
}

type (
	// response answers a request.
	response struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"` // null if it is not known
		Result  any             `json:"result,omitempty"`
		Error   *jrpc2.Error    `json:"error,omitempty"`
	}
	// notification is a message to a client that needs no answer.
	notification struct {
		JSONRPC string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}
	// event is what an operation sends before it is done.
	event struct {
		ID    json.RawMessage `json:"id"`
		Event any             `json:"event"`
	}
	// notice is something that a person should know.
	notice struct {
		ID json.RawMessage `json:"id"`
		home.Notice
	}
	// progress is how far an operation has come.
	progress struct {
		ID    json.RawMessage `json:"id"`
		Doing string          `json:"doing"`
		Done  int64           `json:"done"`
		Total int64           `json:"total"`
	}
	// failure is what an error says beside its code and message.
	failure struct {
		Kind  home.Kind `json:"kind"`
		Field string    `json:"field,omitempty"`
		Hint  string    `json:"hint,omitempty"`
		// Result is what was done before it went wrong.
		Result any `json:"result,omitempty"`
	}
)

// succeeded answers a request with a result.
func succeeded(id json.RawMessage, result any) *response {
	if result == nil {
		result = json.RawMessage("null")
	}
	return &response{JSONRPC: "2.0", ID: id, Result: result}
}

// failed answers a request with an error, and with what was done until then.
func failed(id json.RawMessage, err error, result any) *response {
	if own, ok := err.(*jrpc2.Error); ok {
		return &response{JSONRPC: "2.0", ID: id, Error: own}
	}
	info := home.Describe(err)
	code, ok := codes[info.Kind]
	if !ok {
		code = codes[home.KindError]
	}
	e := &jrpc2.Error{Code: code, Message: info.Message}
	return &response{JSONRPC: "2.0", ID: id, Error: e.WithData(failure{info.Kind, info.Field, info.Hint, result})}
}

func notify(method string, params any) []byte {
	return encode(notification{JSONRPC: "2.0", Method: method, Params: params})
}

// rpc answers a line with a request or a batch.
func (c *conn) rpc(line []byte) {
	requests, err := jrpc2.ParseRequests(line)
	switch {
	case err != nil:
		c.reportBadLine(invalid("", "the line is not JSON"), jrpc2.ParseError)
	case len(requests) == 0:
		c.reportBadLine(invalid("", "the batch is empty"), jrpc2.InvalidRequest)
	case len(requests) > maxBatch:
		c.reportBadLine(invalid("", "the batch has %d requests; %d are allowed", len(requests), maxBatch), jrpc2.InvalidRequest)
	case !requests[0].Batch:
		c.begin(requests[0], func(answer *response) {
			if answer != nil {
				c.write(answer)
			}
		})
	default:
		c.batch(requests)
	}
}

// batch begins all requests of a batch. The last one to end sends the answers.
func (c *conn) batch(requests []*jrpc2.ParsedRequest) {
	var mu sync.Mutex // guards what follows
	answers, missing := make([]*response, len(requests)), len(requests)
	for i, r := range requests {
		c.begin(r, func(answer *response) {
			mu.Lock()
			defer mu.Unlock()
			answers[i] = answer
			if missing--; missing > 0 {
				return
			}
			var all []*response
			for _, answer := range answers {
				if answer != nil {
					all = append(all, answer)
				}
			}
			if len(all) > 0 {
				c.write(all)
			}
		})
	}
}

// call is a request that is under way.
type call struct {
	conn   *conn
	op     *home.Operation
	id     json.RawMessage // nil if no answer is wanted
	params any             // a pointer to op.Request
	input  string          // for an operation that reads
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// begin begins a request, and calls reply once when it is done: with nil if it wants no answer.
func (c *conn) begin(r *jrpc2.ParsedRequest, reply func(*response)) {
	id := json.RawMessage(r.ID)
	if r.ID == "" {
		id = nil
	}
	switch {
	case r.Error != nil:
		if r.Error.Code == jrpc2.ParseError { // it is JSON, or the whole line would have been refused
			r.Error.Code = jrpc2.InvalidRequest
		}
		reply(failed(id, r.Error.WithData(failure{Kind: home.KindInvalid}), nil))
	case r.Method == "":
		reply(failed(id, jrpc2.Errorf(jrpc2.InvalidRequest, "the request has no method").WithData(failure{Kind: home.KindInvalid}), nil))
	case r.Method == cancelMethod:
		reply(answerFor(id, nil, c.cancelCall(r.Params)))
	default:
		one, err := c.newCall(id, r)
		if err == nil {
			err = c.admit(one)
		}
		if err != nil {
			reply(answerFor(id, nil, err))
			return
		}
		go func() {
			defer c.work.Done()
			result, err := c.guarded(one.op.Name, one.run)
			c.leave(one)
			reply(answerFor(id, result, err))
			<-c.tokens(one) // not earlier: a client that does not read its answers gets no more
		}()
	}
}

// answerFor returns the answer to a request, or nil if it wants none.
func answerFor(id json.RawMessage, result any, err error) *response {
	switch {
	case id == nil:
		return nil
	case err != nil:
		return failed(id, err, result)
	}
	return succeeded(id, result)
}

// newCall looks up the operation and reads its request.
func (c *conn) newCall(id json.RawMessage, r *jrpc2.ParsedRequest) (*call, error) {
	op := home.OperationNamed(r.Method)
	if op == nil {
		return nil, jrpc2.Errorf(jrpc2.MethodNotFound, "unknown method %q", r.Method).
			WithData(failure{Kind: home.KindInvalid, Hint: "the methods are the operations that docs/ipc.md lists"})
	}
	one := &call{conn: c, op: op, id: id, params: reflect.New(op.Request).Interface()}
	params := r.Params
	if op.Reads {
		var err error
		if params, one.input, err = splitInput(params); err != nil {
			return nil, err
		}
	}
	return one, decode(params, one.params)
}

// splitInput takes the member "input" out of params: what an operation reads beside its request.
func splitInput(params json.RawMessage) (rest json.RawMessage, input string, err error) {
	var members map[string]json.RawMessage
	if err := decode(params, &members); err != nil || members["input"] == nil {
		return params, "", err
	}
	if err := json.Unmarshal(members["input"], &input); err != nil {
		return nil, "", invalid("input", "input must be a string, the text to read")
	}
	delete(members, "input")
	rest, err = json.Marshal(members)
	return rest, input, err
}

// decode reads params.
func decode(params json.RawMessage, into any) error {
	if len(params) == 0 {
		return nil
	}
	if params[0] == '[' {
		return invalid("params", "params is a JSON array; it must be an object with the members of the request")
	}
	return home.Decode(params, into)
}

// admit waits until a request may begin, or refuses it.
func (c *conn) admit(one *call) error {
	if one.op.Event != nil {
		select {
		case c.streams <- struct{}{}:
		default:
			return &home.ErrorInfo{
				Kind: home.KindLimited, Message: "too many requests that send events are under way on this connection",
				Hint: "cancel one with " + cancelMethod + ", or open another connection",
			}
		}
	} else {
		select {
		case c.unary <- struct{}{}:
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
	}
	if err := c.register(one); err != nil {
		<-c.tokens(one)
		return err
	}
	c.work.Add(1)
	return nil
}

// register makes a request known to those who may cancel it.
func (c *conn) register(one *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.id != nil && c.calls[string(one.id)] != nil {
		return jrpc2.Errorf(jrpc2.InvalidRequest, "a request with the id %s is under way", one.id).WithData(failure{Kind: home.KindInvalid})
	}
	one.ctx, one.cancel = context.WithCancelCause(c.ctx)
	if one.id != nil {
		c.calls[string(one.id)] = one
	}
	if one.isEndless() {
		c.endless[one] = true
	}
	return nil
}

func (c *conn) tokens(one *call) chan struct{} {
	if one.op.Event != nil {
		return c.streams
	}
	return c.unary
}

// leave forgets a request that is done, so that its client may use the id again.
func (c *conn) leave(one *call) {
	one.cancel(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.id != nil {
		delete(c.calls, string(one.id))
	}
	delete(c.endless, one)
}

// isEndless reports whether a request ends only when its client cancels it.
func (one *call) isEndless() bool {
	switch r := one.params.(type) {
	case *home.FollowRequest:
		return true
	case *home.ImportRequest:
		return r.Watch > 0
	}
	return false
}

// errCancelled is why a request ends that its client cancelled.
var errCancelled = &home.ErrorInfo{Kind: home.KindInterrupted, Message: "the client cancelled the request"}

// cancelCall cancels a request. It is not an error if the request is done already.
func (c *conn) cancelCall(params json.RawMessage) error {
	var r struct {
		ID json.RawMessage `json:"id"`
	}
	if err := decode(params, &r); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.calls[string(r.ID)]; one != nil {
		one.cancel(errCancelled)
	}
	return nil
}

// run performs the operation.
func (one *call) run() (any, error) {
	out, ctx := one.conn.out, one.ctx
	var send func(any) error
	if one.id == nil { // without an id, events, notices and progress could not be attributed
		ctx = home.WithNotify(ctx, one.conn.server.notify)
		ctx = home.WithProgress(ctx, func(string, int64, int64) {})
	} else {
		method := one.op.Name + ".event"
		send = func(e any) error { return out.send(ctx, notify(method, event{one.id, e})) }
		ctx = home.WithNotify(ctx, func(n home.Notice) { out.post(notify("notice", notice{one.id, n})) })
		ctx = home.WithProgress(ctx, one.progress())
	}
	var in io.Reader
	if one.op.Reads {
		in = strings.NewReader(one.input)
	}
	result, err := one.op.Call(ctx, one.conn.server.home, one.params, in, send)
	if cause := context.Cause(ctx); cause != nil && home.KindOf(err) == home.KindInterrupted {
		err = cause // it says more than that a context ended
	}
	return result, err
}

// progress returns a function that tells the client how far the operation has come, now and
// then.
func (one *call) progress() func(doing string, done, total int64) {
	var mu sync.Mutex
	last := time.Now() // a quick operation needs none
	return func(doing string, done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(last) >= 100*time.Millisecond {
			last = now
			one.conn.out.post(notify("progress", progress{one.id, doing, done, total}))
		}
	}
}
