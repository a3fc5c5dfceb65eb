package postgres

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// # Statements
//
// The statements of an index are written for SQLite; package room says how. Here they become
// statements for PostgreSQL, for the schema and the tenant of a store, word by word:
//
//	?, ?2                       $1, $2
//	FROM docs d                 FROM (SELECT * FROM coppice.index_docs WHERE tenant = '…') d
//	UPDATE docs SET … WHERE c   UPDATE coppice.index_docs AS docs SET … WHERE docs.tenant = '…' AND (c)
//	INSERT INTO docs (id) …     INSERT INTO coppice.index_docs AS docs (tenant, id) …
//	FROM fts f … f.fts MATCH ?  FROM coppice.index_found('…', $1, …) AS f(id) … true
//	f.rowid                     f.id
//	json_each(?)                a list, whose values are numbers, or, as atom, text
//	json_each(s.tools)          an object whose values are numbers
//	CROSS JOIN docs d ON c      JOIN LATERAL (SELECT d.* FROM coppice.index_docs d WHERE d.tenant = '…' AND (c) OFFSET 0) d ON true:
//	                            both look up the rows of docs for each row of what is before
//	INDEXED BY i, NOT INDEXED   nothing: PostgreSQL chooses by itself
//	instr                       strpos
//	lower(?)                    lower($1 COLLATE "C"), which leaves all but ASCII alone

// tableNames are the tables that a statement may name.
var tableNames = []string{
	"sessions", "tags", "files", "entries", "damage", "docs", "silent", "terms", "names", "counters", "swept", "usage", "ledgers", "stale",
}

// translator translates statements.
type translator struct {
	sql    func(string) string // for the schema
	tenant string              // as a literal

	mu    sync.Mutex
	known map[string]*statement
}

// statement is a translated statement.
type statement struct {
	text string
	// match is the number of the parameter that is a full-text query, or 0. Then what else
	// the query says follows all other parameters.
	match int
}

// maxKnown is how many statements are remembered. Some have as many parameters as a list has
// elements.
const maxKnown = 1000

func newTranslator(sql func(string) string, tenant string) *translator {
	return &translator{sql: sql, tenant: quote(tenant), known: make(map[string]*statement)}
}

// quote returns a string as a literal. The server's strings conform to the standard, in which
// a backslash is one.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// translate returns the statement for PostgreSQL.
func (t *translator) translate(query string) *statement {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s, ok := t.known[query]; ok {
		return s
	}
	if len(t.known) == maxKnown {
		clear(t.known)
	}
	w := &translation{translator: t, tokens: scan(query), out: new(strings.Builder)}
	s := w.translate()
	t.known[query] = s
	return s
}

// token is a word, with the columns of a table as in s.id; a number, a string, a parameter or an
// operator; and the white space before it.
type token struct{ space, text string }

// is reports whether the token is a keyword.
func (t token) is(word string) bool { return strings.EqualFold(t.text, word) }

func (t token) isWord() bool { return t.text != "" && isLetter(t.text[0]) }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80 }

func isWordByte(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' || c == '.' }

// scan splits a statement into tokens.
func scan(query string) (tokens []token) {
	for query != "" {
		rest := strings.TrimLeft(query, " \t\n")
		space := query[:len(query)-len(rest)]
		n := tokenLen(rest)
		tokens = append(tokens, token{space, rest[:n]})
		query = rest[n:]
	}
	return tokens
}

// tokenLen returns the length of the token at the beginning of a text.
func tokenLen(s string) int {
	run := func(n int, is func(byte) bool) int {
		for n < len(s) && is(s[n]) {
			n++
		}
		return n
	}
	switch {
	case s == "":
		return 0
	case s[0] == '\'':
		n := 1
		for {
			end := strings.IndexByte(s[n:], '\'')
			if end < 0 {
				return len(s)
			}
			if n += end + 1; n == len(s) || s[n] != '\'' {
				return n
			}
			n++ // a quotation mark in the string
		}
	case s[0] == '?':
		return run(1, func(c byte) bool { return c >= '0' && c <= '9' })
	case isWordByte(s[0]):
		return run(1, isWordByte)
	case len(s) > 1 && slices.Contains([]string{"<<", ">>", "<=", ">=", "<>", "||"}, s[:2]):
		return 2
	}
	return 1
}

// translation is a statement that is being translated.
type translation struct {
	*translator
	tokens []token
	at     int
	out    *strings.Builder

	params int // the number of the last parameter
	result statement

	depth  int    // of parentheses
	table  string // that an UPDATE or DELETE changes, until its condition
	values bool   // what follows are rows to insert
	end    string // to be written after the statement
}

func (w *translation) translate() *statement {
	w.number()
	w.run(len(w.tokens))
	if w.table != "" {
		w.out.WriteString(" WHERE " + w.ours(w.table))
	}
	w.result.text = w.out.String() + w.end
	return &w.result
}

// run translates the tokens before one.
func (w *translation) run(end int) {
	for w.at < end {
		t := w.tokens[w.at]
		w.out.WriteString(t.space)
		w.at++
		switch {
		case t.isWord():
			w.word(t)
		default:
			w.other(t)
		}
	}
}

// number gives the parameters their numbers.
func (w *translation) number() {
	for i, t := range w.tokens {
		if !strings.HasPrefix(t.text, "?") {
			continue
		}
		n := w.params + 1
		if t.text != "?" {
			n, _ = strconv.Atoi(t.text[1:])
		}
		w.params = max(w.params, n)
		w.tokens[i].text = "$" + strconv.Itoa(n)
		if i > 0 && w.tokens[i-1].is("MATCH") {
			w.result.match = n
		}
	}
}

// peek returns the token after so many others.
func (w *translation) peek(n int) token {
	if w.at+n >= len(w.tokens) {
		return token{}
	}
	return w.tokens[w.at+n]
}

// ours is the condition that a row is of the tenant.
func (w *translation) ours(table string) string { return table + ".tenant = " + w.tenant }

func (w *translation) write(parts ...string) {
	for _, s := range parts {
		w.out.WriteString(s)
	}
}

// word translates a word, which the caller has passed.
func (w *translation) word(t token) {
	switch word := strings.ToUpper(t.text); word {
	case "FROM", "JOIN":
		w.write(t.text)
		w.from()
	case "CROSS":
		if on := w.joinsOn(); on > 0 {
			w.lookUp(on)
			return
		}
		w.write(t.text)
	case "INDEXED": // BY index
		w.at += 2
	case "NOT":
		if w.peek(0).is("INDEXED") {
			w.at++
			return
		}
		w.write(t.text)
	case "UPDATE", "DELETE", "INSERT":
		w.change(word)
	case "WHERE":
		w.write(t.text)
		if w.table != "" && w.depth == 0 {
			w.write(" ", w.ours(w.table), " AND (")
			w.table, w.end = "", ")"
		}
	case "ON":
		w.write(t.text)
		w.values = false
		if w.peek(0).is("CONFLICT") && w.peek(1).text == "(" {
			w.write(" CONFLICT (tenant, ")
			w.at += 2
			w.depth++
		}
	case "VALUES":
		w.write(t.text)
		w.values = true
	default:
		w.name(t)
	}
}

// name translates a word that is no keyword.
func (w *translation) name(t token) {
	column := t.text[strings.LastIndexByte(t.text, '.')+1:]
	switch {
	case column == "fts" && w.peek(0).is("MATCH"):
		w.at += 2
		w.write("true")
	case column == "rowid":
		w.write(strings.TrimSuffix(t.text, "rowid"), "id")
	case w.peek(0).text == "(":
		w.call(t.text)
	default:
		w.write(t.text)
	}
}

// call translates a function up to its parenthesis.
func (w *translation) call(name string) {
	switch strings.ToLower(name) {
	case "instr":
		name = "strpos"
	case "lower":
		if p := w.peek(1).text; strings.HasPrefix(p, "$") && w.peek(2).text == ")" {
			w.write("lower(", p, ` COLLATE "C")`)
			w.at += 3
			return
		}
	case "json_each":
		w.jsonEach()
		return
	}
	w.write(name)
}

// closing returns how many tokens after this one the parenthesis is closed that it opens.
func (w *translation) closing(n int) int {
	for depth := 0; w.at+n < len(w.tokens); n++ {
		switch w.peek(n).text {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return n
			}
		}
	}
	return n
}

// jsonEach translates json_each(…). Text cannot have the character 0.
func (w *translation) jsonEach() {
	arg := w.peek(1).text
	w.at += 3
	text := func(s string) string { return `replace(` + s + `, '\u0000', '\ufffd')::json` }
	if strings.HasPrefix(arg, "$") {
		w.write(`(SELECT e::bigint AS value, e COLLATE "C" AS atom FROM json_array_elements_text(`, text(arg+"::text"), `) AS e)`)
	} else {
		w.write(`LATERAL (SELECT e.key, e.value::bigint AS value FROM json_each_text(`, text(arg), `) AS e)`)
	}
	if !w.peek(0).isAlias() {
		w.write(" json_each")
	}
}

// afterTable are the keywords that may follow a table.
var afterTable = []string{
	"WHERE", "ON", "JOIN", "LEFT", "INNER", "CROSS", "ORDER", "GROUP", "LIMIT", "UNION", "INDEXED", "NOT", "SET",
}

// isAlias reports whether a token after a table is its other name.
func (t token) isAlias() bool {
	return t.isWord() && !slices.Contains(afterTable, strings.ToUpper(t.text))
}

// joinsOn returns how many tokens after this one the condition of the CROSS JOIN here follows,
// which no other database allows, or 0.
func (w *translation) joinsOn() int {
	n := 1 // the table
	if !slices.Contains(tableNames, w.peek(n).text) {
		return 0
	}
	for n++; w.peek(n).isAlias(); n++ {
	}
	switch {
	case w.peek(n).is("INDEXED"):
		n += 3
	case w.peek(n).is("NOT"):
		n += 2
	}
	if w.peek(n).is("ON") {
		return n + 1
	}
	return 0
}

// lookUp translates the CROSS JOIN here, whose condition follows after so many tokens.
func (w *translation) lookUp(on int) {
	table := w.peek(1).text
	alias := table
	for n := 2; w.peek(n).isAlias(); n++ {
		alias = w.peek(n).text
	}
	end := on
	for !slices.Contains(afterCondition, strings.ToUpper(w.peek(end).text)) {
		if w.peek(end).text == "(" {
			end = w.closing(end)
		}
		end++
	}
	end += w.at
	w.write("JOIN LATERAL (SELECT ", alias, ".* FROM ", w.sql("coppice.index_"), table, " ", alias, " WHERE ", w.ours(alias), " AND (")
	w.at += on
	w.run(end)
	w.write(") OFFSET 0) ", alias, " ON true")
}

// afterCondition is what may follow the condition of a join, whose AND and OR belong to it.
var afterCondition = []string{"", ")", "WHERE", "ON", "JOIN", "LEFT", "INNER", "CROSS", "ORDER", "GROUP", "LIMIT", "UNION"}

// from translates the table here, if it is one.
func (w *translation) from() {
	t := w.peek(0)
	if t.text != "fts" && !slices.Contains(tableNames, t.text) {
		return
	}
	w.at++
	w.write(t.space)
	alias := t.text
	if w.peek(0).is("AS") {
		w.at++
	}
	if next := w.peek(0); next.isAlias() {
		alias = next.text
		w.at++
	}
	if t.text != "fts" {
		w.write("(SELECT * FROM ", w.sql("coppice.index_"), t.text, " WHERE tenant = ", w.tenant, ") ", alias)
		return
	}
	param := func(n int) string { return "$" + strconv.Itoa(n) }
	w.write(w.sql("coppice.index_found("), w.tenant, ", ", param(w.result.match), "::text::tsquery")
	for n := range 3 {
		w.write(", ", param(w.params+1+n), "::bigint")
	}
	w.write(") AS ", alias, "(id)")
}

// change translates the beginning of a statement that writes.
func (w *translation) change(word string) {
	w.write(word)
	if word != "UPDATE" {
		w.write(" ", w.peek(0).text) // INTO, FROM
		w.at++
	}
	table := w.peek(0)
	if !slices.Contains(tableNames, table.text) {
		return // DO UPDATE
	}
	w.at++
	w.write(" ", w.sql("coppice.index_"), table.text, " AS ", table.text)
	if word != "INSERT" {
		w.table = table.text
		return
	}
	end := w.closing(0)
	w.write(" (tenant, ")
	for n := 1; n <= end; n++ {
		w.write(w.peek(n).space, w.peek(n).text)
	}
	w.at += end + 1
	if w.peek(0).is("SELECT") {
		w.write(" SELECT ", w.tenant, ",")
		w.at++
	}
}

// other translates a token that is no word: a parenthesis, for example.
func (w *translation) other(t token) {
	w.write(t.text)
	switch t.text {
	case "(":
		if w.values && w.depth == 0 {
			w.write(w.tenant, ", ")
		}
		w.depth++
	case ")":
		w.depth--
	}
}
