// Package code splits source code into tokens, so that a renderer can colour them.
//
// The language is the one that somebody named: after the fence of a code block, or as the
// extension of a file. It is never guessed from the code.
//
// This is slow: about a megabyte per second and processor. Callers with a lot of code must
// decide how much of it to colour.
package code

import (
	"iter"
	"strings"
	"time"

	"github.com/alecthomas/chroma/v2"
)

// Kind is what a part of a piece of code is.
type Kind uint8

// The kinds. Anything else is Plain, and so are operators: a page on which everything
// is coloured emphasises nothing.
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
	// maxSize is how much of a piece of code is examined. The rest of a larger one is Plain.
	maxSize = 16 << 10
	// maxTime limits the cost of code that was written to be costly, because grammars are
	// regular expressions that backtrack. Ordinary code of maxSize takes a fifth of it.
	maxTime = 500 * time.Millisecond
)

// Parts yields a text part by part. Together they are the text, whatever it is.
// If the language is not known, all of it is one part.
func Parts(language, text string) iter.Seq2[Kind, string] {
	return func(yield func(Kind, string) bool) {
		rest := text
		if g := find(language); g != nil {
			for _, p := range patiently(g, text) {
				if !yield(p.kind, rest[:p.size]) {
					return
				}
				rest = rest[p.size:]
			}
		}
		if rest != "" {
			yield(Plain, rest)
		}
	}
}

// Known reports whether there is a grammar for a language.
func Known(language string) bool { return find(language) != nil }

// part is a piece of a text that follows the one before.
type part struct {
	kind Kind
	size int
}

// patiently is lex that tries again if time runs out. Costly code is costly twice, but
// a machine hardly stalls twice at the same place, and the same text should look the
// same.
func patiently(g *grammar, text string) []part {
	parts, over := lex(g, text, maxTime)
	if over {
		parts, _ = lex(g, text, maxTime)
	}
	return parts
}

// lex returns the parts of a text as far as the grammar gets, and whether it took too long.
//
// From the first token that does not continue the text, nothing that the grammar says
// is used. A grammar that refers to another one that is not there panics.
func lex(g *grammar, text string, limit time.Duration) (parts []part, over bool) {
	defer func() { _ = recover() }() // the parts up to the panic are right
	if len(text) > maxSize {
		text = text[:1+strings.LastIndexByte(text[:maxSize], '\n')]
	}
	began := time.Now()
	g.tokens(text, func(t chroma.Token) bool {
		over = time.Since(began) > limit
		if over || !strings.HasPrefix(text, t.Value) {
			return false
		}
		text = text[len(t.Value):]
		if n, kind := len(parts), kindOf(t); n > 0 && (parts[n-1].kind == kind || t.Value == "") {
			parts[n-1].size += len(t.Value)
		} else {
			parts = append(parts, part{kind, len(t.Value)})
		}
		return true
	})
	return parts, over
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
