package provider

// Rule is a kind of rule that providers make for requests.
type Rule string

// The rules. Each provider has its own words for them, and refuses a request
// that breaks one.
const (
	RuleShape      Rule = "shape"             // a member is missing or has the wrong type
	RuleRole       Rule = "role"              // a role that does not exist, or not here
	RuleEmpty      Rule = "empty"             // a message or a block without content
	RuleUnanswered Rule = "unanswered call"   // a call without its result right after it
	RuleOrphan     Rule = "orphan result"     // a result without its call right before it
	RuleRepeated   Rule = "repeated id"       // two calls, or two results, with the same id
	RuleName       Rule = "name"              // an id or a name with forbidden characters or length
	RuleOrder      Rule = "order"             // blocks or messages in an order that is refused
	RuleUnsigned   Rule = "unsigned thinking" // thinking without the signature of its provider
	RuleMedia      Rule = "media"             // a picture, a file or a recording that is not taken: see package media
)

// Fault is a place where a request breaks a rule of its provider. The packages of
// the providers find them: see their Check functions.
type Fault struct {
	Rule Rule
	At   string // the place in the request, such as "messages[3].content[0]"
	What string // what is wrong there
}

// String returns the fault in one line.
func (f Fault) String() string { return f.At + ": " + f.What }
