// Package complete says what an author can write at a place in a text: text and cursor ─▶ parse with a filler there ─▶ scopes of the
// resolver ─▶ suggestions (contract: clients-queries.md, section 8).
package complete

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Language is what a text is written in.
type Language string

// The languages. What is no HogQL has variables, functions and globals alone.
const (
	HogQL    Language = "hogQL"       // one query
	Expr     Language = "hogQLExpr"   // one expression
	Template Language = "hogTemplate" // a text with expressions of Hog in braces
	Hog      Language = "hog"         // a program
	JSON     Language = "hogJson"     // JSON whose texts are templates
	Liquid   Language = "liquid"      // a text with expressions of Liquid in braces
)

// Ask is a text and the place in it. Start and End are the ends, in characters (code points), of the word that is being written; the cursor
// is at End. Whatever they are, there is a place: those beyond the text count as its ends.
type Ask struct {
	Language   Language
	Text       string
	Start, End int
	// Around is the query to whose columns an expression would be added.
	Around string
	// Globals are values that the text can name.
	Globals map[string]any
}

// World is what can be named beside the tables of the schema. All of it is the caller's project's own.
type World struct {
	resolve.World

	// Variables are the code names of the insight variables, in order.
	Variables []string
	// Properties yields the defined properties of a scope by their names, in order; a group of -1 asks for those of all types of groups.
	// Nil: there are none.
	Properties func(scope schema.PropertyScope, group int) iter.Seq2[string, schema.PropertyType]
	// Tables gives the names that can follow FROM, in order.
	Tables func() []string
}

// Kind says what a suggestion is, in the words of Monaco's completion items.
type Kind string

// The kinds of suggestions.
const (
	Variable Kind = "Variable"
	Function Kind = "Function"
	Constant Kind = "Constant"
	Folder   Kind = "Folder"
)

// Suggestion is one thing to write.
type Suggestion struct {
	Label  string
	Insert string
	Kind   Kind
	Detail string // its type, or what it is; empty for none
	Sort   string // orders the suggestions of a kind; empty for the order of their labels
}

// Completion is what can be written at a place.
type Completion struct {
	Suggestions []Suggestion
	// Functions are the functions of HogQL behind the suggestions; nil for none.
	Functions *Functions
	// Incomplete reports whether there are more than are listed.
	Incomplete bool
}

// tableDetail and variableDetail say what a suggestion is that has no type.
const (
	tableDetail    = "Table"
	variableDetail = "Variable"
)

// filler stands for a name that is still to be written.
const filler = "$$_HERE_$$"

// maxAsked is the longest text, in bytes, that is looked at.
const maxAsked = 256 << 10

// At finds what can be written at a place. What is wrong with the text is no error: then there may be nothing. The error is what ended the
// budget, or a bug.
func At(a *Ask, w *World) (*Completion, error) {
	out := new(Completion)
	if len(a.Text) > maxAsked || !utf8.ValidString(a.Text) {
		return out, nil
	}
	start, end := offsets(a.Text, a.Start, a.End)
	c := &completing{Ask: a, World: w, out: out, start: start, end: end}
	switch a.Language {
	case HogQL, Expr:
		return out, c.hogQL()
	case Hog:
		c.hog(a.Text, end)
	case Template, Liquid:
		c.template(a.Text, end)
	case JSON:
		c.json()
	}
	return out, nil
}

// completing is one call of At. The ends of the word are in bytes.
type completing struct {
	*Ask
	*World

	out        *Completion
	start, end int
}

// offsets turns the ends of a word from characters to bytes, and puts them inside the text and in order.
func offsets(text string, start, end int) (from, to int) {
	to = offset(text, end)
	return min(offset(text, start), to), to
}

// offset is the number of bytes that a number of characters takes.
func offset(text string, characters int) int {
	at := 0
	for ; characters > 0 && at < len(text); characters-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

// try completes the word with the text that is tried, in which the filler is at the cursor. It reports whether there is something to say.
func (c *completing) try(text string) (bool, error) {
	spend := c.Spend
	var (
		q   hogql.Query
		err error
	)
	if c.Language == Expr {
		q, err = c.expression(text, spend)
	} else {
		q, err = hogql.ParseWithin(text, spend)
	}
	if err != nil {
		return false, nil //nolint:nilerr // a text with a mistake says nothing, and the next filler may help
	}
	found := find(q, c.end, c.end+len(filler))
	switch {
	case found == nil:
		return false, nil
	case found.table != nil:
		c.tables(found)
		return true, nil
	}
	return c.field(q, found)
}

// expression makes one query of an expression and the query around it, whose places lie behind those of the expression.
func (c *completing) expression(text string, spend *budget.Budget) (hogql.Query, error) {
	e, err := hogql.ParseExprWithin(text, spend)
	if err != nil {
		return nil, err
	}
	around, err := hogql.ParseWithin(strings.Repeat(" ", len(text)+1)+c.Around, spend)
	if err != nil {
		around = &hogql.Select{From: &hogql.TableName{Chain: []hogql.Name{{Text: defaultTable}}}}
	}
	if sel, ok := around.(*hogql.Select); ok {
		with := *sel
		with.Columns = append(slices.Clip(with.Columns), e)
		return &with, nil
	}
	return &hogql.Select{Columns: []hogql.Expr{e}, From: &hogql.Derived{Query: around}}, nil
}

// defaultTable is what a query without FROM is taken to read.
const defaultTable = "events"
