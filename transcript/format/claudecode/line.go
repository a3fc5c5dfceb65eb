package claudecode

import (
	"bytes"
	"encoding/hex"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// line is what a line says, as slices of its text.
type line struct {
	typ, subtype      []byte
	uuid, parent      []byte
	logicalParent     []byte
	sessionID         []byte
	agentID           []byte
	requestID         []byte
	timestamp         []byte
	cwd, branch       []byte
	version           []byte
	text              []byte // of lines that say something about the session
	leaf              []byte
	forkOf, copyOf    []byte // the session that this one was forked from, and the line there
	otherIDs          []byte // the ids that calls had in another program
	sidechain         bool
	root              bool // it says that it has no parent
	meta              bool
	failed            bool   // isApiErrorMessage
	origin            []byte // who spoke in the user's name
	summary           bool   // isCompactSummary
	message           []byte
	content           []byte // of system lines
	attachment        []byte
	data              []byte // of progress lines
	compact           []byte // compactMetadata or microcompactMetadata
	result            []byte // toolUseResult
	messageID, model  []byte // of message
	stopReason, usage []byte
	blocks            []byte
}

// parse reads a line, and keeps only the members that a reader needs.
func (l *line) parse(data []byte) error {
	*l = line{}
	return rawjson.Object(data, l.member)
}

// str returns the text of a string, without a copy if it has no escapes, or nil.
func str(value []byte) []byte {
	text, _ := rawjson.StringBytes(value, nil)
	return text
}

// member keeps a member whose value is a text; keep keeps the others.
func (l *line) member(key, value []byte) error {
	switch string(key) {
	case "type":
		l.typ = str(value)
	case "subtype":
		l.subtype = str(value)
	case "uuid":
		l.uuid = str(value)
	case "parentUuid":
		l.parent, l.root = str(value), rawjson.IsNull(value)
	case "logicalParentUuid":
		l.logicalParent = str(value)
	case "sessionId":
		l.sessionID = str(value)
	case "agentId":
		l.agentID = str(value)
	case "requestId":
		l.requestID = str(value)
	case "timestamp":
		l.timestamp = str(value)
	case "cwd":
		l.cwd = str(value)
	case "gitBranch":
		l.branch = str(value)
	case "version":
		l.version = str(value)
	case "summary", "customTitle", "aiTitle", "tag":
		l.text = str(value)
	case "leafUuid":
		l.leaf = str(value)
	default:
		l.keep(key, value)
	}
	return nil
}

// keep keeps a flag, an object or a list, if a reader needs it.
func (l *line) keep(key, value []byte) {
	switch string(key) {
	case "isSidechain":
		l.sidechain, _ = rawjson.Bool(value)
	case "isMeta":
		l.meta, _ = rawjson.Bool(value)
	case "isApiErrorMessage":
		l.failed, _ = rawjson.Bool(value)
	case "isCompactSummary":
		l.summary, _ = rawjson.Bool(value)
	case "origin":
		l.origin = value
	case "message":
		if rawjson.Kind(value) == 'o' {
			l.message = value
		}
	case "content":
		l.content = value
	case "attachment":
		l.attachment = value
	case "data":
		l.data = value
	case "compactMetadata", "microcompactMetadata":
		l.compact = value
	case "toolUseResult":
		l.result = value
	case "forkedFrom":
		of := rawjson.MembersOf(value)
		l.forkOf, l.copyOf = str(of.Get("sessionId")), str(of.Get("messageUuid"))
	case otherIDsMember:
		l.otherIDs = value
	}
}

// otherIDsMember is a member of lines that an export wrote: the ids that calls had,
// by those that they have there.
const otherIDsMember = "originalToolIds"

// contents returns the blocks of the line's message.
func (l *line) contents() []session.Content {
	blocks := contents(l.blocks)
	if l.otherIDs == nil {
		return blocks
	}
	ids := rawjson.MembersOf(l.otherIDs)
	for i := range blocks {
		if use := blocks[i].ToolUse; use != nil && ids.Has(use.ID) {
			use.ID = ids.Str(use.ID)
		}
		if res := blocks[i].ToolResult; res != nil && ids.Has(res.ToolUseID) {
			res.ToolUseID = ids.Str(res.ToolUseID)
		}
	}
	return blocks
}

// clears reports whether the line says that the user cleared the conversation: what
// follows it has no past.
func (l *line) clears() bool {
	for _, hook := range [][]byte{l.data, l.attachment} {
		if string(rawjson.MembersOf(hook).Get("hookName")) == `"SessionStart:clear"` {
			return true
		}
	}
	return false
}

// isRemark reports whether the line is about the session and not part of its tree. The SDK
// gives some of these lines a uuid, too.
func (l *line) isRemark() bool { return len(l.uuid) == 0 || metaTypes[string(l.typ)] }

// repeats reports whether the line is one of another session under its own id: a
// fork's copy of it, which says nothing new.
func (l *line) repeats() bool { return len(l.copyOf) > 0 && bytes.Equal(l.copyOf, l.uuid) }

// parseMessage reads the message of a line.
func (l *line) parseMessage() {
	_ = rawjson.Object(l.message, func(key, value []byte) error { // it was walked before: it is whole
		switch string(key) {
		case "id":
			l.messageID = str(value)
		case "model":
			l.model = str(value)
		case "stop_reason":
			l.stopReason = str(value)
		case "usage":
			l.usage = value
		case "content":
			l.blocks = value
		}
		return nil
	})
}

func (l *line) time() time.Time {
	t, err := time.Parse(time.RFC3339Nano, string(l.timestamp))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// key is the id of a line in 16 bytes.
type key [16]byte

// keyOf returns the key of an id: the bytes of a UUID, or a hash of any other text.
func keyOf(id []byte) key {
	var k key
	if len(id) == 36 && id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-' {
		var digits [32]byte
		copy(digits[0:], id[0:8])
		copy(digits[8:], id[9:13])
		copy(digits[12:], id[14:18])
		copy(digits[16:], id[19:23])
		copy(digits[20:], id[24:36])
		if _, err := hex.Decode(k[:], digits[:]); err == nil {
			return k
		}
	}
	return hashKey(id)
}

// text returns the UUID whose bytes a key holds.
func (k key) text() (text [36]byte) {
	for i, at := range [...]struct{ from, to, bytes int }{{0, 8, 0}, {9, 13, 4}, {14, 18, 6}, {19, 23, 8}, {24, 36, 10}} {
		if i > 0 {
			text[at.from-1] = '-'
		}
		hex.Encode(text[at.from:at.to], k[at.bytes:at.bytes+(at.to-at.from)/2])
	}
	return text
}

func isUUID(id string) bool {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' {
		return false
	}
	_, err := hex.DecodeString(id[:8] + id[9:13] + id[14:18] + id[19:23] + id[24:])
	return err == nil
}
