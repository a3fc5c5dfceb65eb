// Package code tells what the parts of a piece of source code are, so that a
// renderer can colour them.
//
// The language is what somebody called it: the name behind the fence of a block,
// or the extension of a file. It is never guessed from the code.
//
// It is slow: a processor does a few hundred kilobytes in a second. Who has much code
// to show decides how much of it is worth that.
package code

import (
	"iter"
	"strings"
	"time"

	"github.com/alecthomas/chroma/v2"
)

// Kind is what a part of a piece of code is.
type Kind uint8

// The kinds. What none of the others fits is Plain, and so are operators: a
// page on which everything is coloured emphasises nothing.
const (
	Plain Kind = iota
	Keyword
	Type
	Function
	String
	Number
	Comment
	Name     // a tag, an attribute, a key, a decorator
	Heading  // a section of a configuration file, the head of a diff
	Inserted // a line of a diff
	Deleted  // a line of a diff
)

const (
	// maxSize is the size of the largest piece of code that is looked at. The
	// rest of a larger one is Plain.
	maxSize = 16 << 10
	// maxTime bounds what a piece of code can cost that was written to be costly:
	// grammars are regular expressions that go back. Ordinary code of maxSize takes
	// a tenth of it.
	maxTime = time.Second
)

// Parts yields a text part by part. Together they are the text, whatever it is.
// If the language is not known, all of it is one part.
func Parts(language, text string) iter.Seq2[Kind, string] {
	return func(yield func(Kind, string) bool) {
		rest := text
		if lexer := find(language); lexer != nil {
			ok := true
			if rest, ok = lex(lexer, text, yield); !ok {
				return
			}
		}
		if rest != "" {
			yield(Plain, rest)
		}
	}
}

// Known reports whether there is a grammar for a language.
func Known(language string) bool { return find(language) != nil }

// lex yields the parts of a text as far as the grammar leads, and returns what is
// left of it. ok is false if nobody wants more.
//
// Chroma panics if a grammar refers to one that is not there, and may change line
// ends: from the first token on that does not continue the text, nothing that it
// says is used.
func lex(lexer chroma.Lexer, text string, yield func(Kind, string) bool) (rest string, ok bool) {
	head := text
	if len(head) > maxSize {
		head = head[:1+strings.LastIndexByte(head[:maxSize], '\n')]
	}
	next, err := lexer.Tokenise(nil, head)
	if err != nil {
		return text, true
	}
	rest = text
	var part string // the tokens of one kind so far
	var kind Kind
	for began := time.Now(); time.Since(began) < maxTime; {
		t := safely(next)
		if t == chroma.EOF || !strings.HasPrefix(rest[len(part):], t.Value) {
			break
		}
		if t.Value == "" { // a group that matched nothing
			continue
		}
		k := kindOf(t)
		if k != kind && part != "" {
			if !yield(kind, part) {
				return "", false
			}
			rest, part = rest[len(part):], ""
		}
		kind, part = k, rest[:len(part)+len(t.Value)]
	}
	if part != "" && !yield(kind, part) {
		return "", false
	}
	return rest[len(part):], true
}

// safely returns the next token, or EOF if the grammar is broken.
func safely(next chroma.Iterator) (t chroma.Token) {
	defer func() {
		if recover() != nil {
			t = chroma.EOF
		}
	}()
	return next()
}

func kindOf(t chroma.Token) Kind {
	switch t.Type {
	case chroma.KeywordType, chroma.NameClass, chroma.NameException, chroma.NameBuiltinPseudo:
		return Type
	case chroma.NameFunction, chroma.NameBuiltin, chroma.NameFunctionMagic:
		return Function
	case chroma.NameTag, chroma.NameAttribute, chroma.NameDecorator, chroma.NameProperty, chroma.NameKeyword, chroma.NameVariable, chroma.NameLabel, chroma.NameEntity:
		return Name
	case chroma.GenericHeading, chroma.GenericSubheading:
		return Heading
	case chroma.GenericInserted:
		return Inserted
	case chroma.GenericDeleted:
		return Deleted
	}
	switch {
	case t.Type.InCategory(chroma.Keyword):
		return Keyword
	case t.Type.InCategory(chroma.Comment):
		return Comment
	case t.Type.InSubCategory(chroma.LiteralString):
		return String
	case t.Type.InSubCategory(chroma.LiteralNumber):
		return Number
	}
	return Plain
}
