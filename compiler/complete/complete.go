// Package complete suggests what can be typed at a place in a text: text and cursor ─▶ parse with a filler at the cursor ─▶ scopes of the
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

// Language is the language of a text.
type Language string

// The languages. Outside HogQL, only variables, functions and globals are suggested.
const (
	HogQL    Language = "hogQL"       // one query
	Expr     Language = "hogQLExpr"   // one expression
	Template Language = "hogTemplate" // a text with expressions of Hog in braces
	Hog      Language = "hog"         // a program
	JSON     Language = "hogJson"     // JSON whose texts are templates
	Liquid   Language = "liquid"      // a text with expressions of Liquid in braces
)

// Ask is a text and a place in it. Start and End delimit, in characters (code points), the word that is being typed; the cursor is at End. Values
// beyond the text are moved to its ends.
type Ask struct {
	Language   Language
	Text       string
	Start, End int
	// Around is the query that an expression would be a column of.
	Around string
	// Globals are values that the text can name.
	Globals map[string]any
}

// World is what can be named besides the tables of the schema. All of it belongs to the caller's project.
type World struct {
	resolve.World

	// Variables are the code names of the insight variables, in order.
	Variables []string
	// Properties yields the defined properties of a scope, sorted by name; group -1 means the properties of all group types. Nil for none.
	Properties func(scope schema.PropertyScope, group int) iter.Seq2[string, schema.PropertyType]
	// Tables returns the names that can follow FROM, in order.
	Tables func() []string
}

// Kind is the kind of a suggestion, in the words of Monaco's completion items.
type Kind string

// The kinds of suggestions.
const (
	Variable Kind = "Variable"
	Function Kind = "Function"
	Constant Kind = "Constant"
	Folder   Kind = "Folder"
)

// Suggestion is one text to insert.
type Suggestion struct {
	Label  string
	Insert string
	Kind   Kind
	Detail string // its type or description; empty for none
	Sort   string // sorts the suggestions of a kind; empty to sort by label
}

// Completion is what can be typed at a place.
type Completion struct {
	Suggestions []Suggestion
	// Functions are the HogQL functions, listed after the suggestions; nil for none.
	Functions *Functions
	// Incomplete reports whether there are more than those listed.
	Incomplete bool
}

// tableDetail and variableDetail are the details of suggestions without a type.
const (
	tableDetail    = "Table"
	variableDetail = "Variable"
)

// filler stands for the name being typed.
const filler = "$$_HERE_$$"

// maxText is the longest text, in bytes, that is completed.
const maxText = 256 << 10

// At finds what can be typed at a place. Mistakes in the text are no error, but may leave nothing to suggest. An error comes from the budget,
// or is a bug.
func At(a *Ask, w *World) (*Completion, error) {
	out := new(Completion)
	if len(a.Text) > maxText || !utf8.ValidString(a.Text) {
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

// offsets converts the ends of a word from characters to bytes, and clamps and orders them.
func offsets(text string, start, end int) (from, to int) {
	to = offset(text, end)
	return min(offset(text, start), to), to
}

// offset returns the number of bytes of the first characters of a text.
func offset(text string, characters int) int {
	at := 0
	for ; characters > 0 && at < len(text); characters-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

// try completes the word in a text with the filler at the cursor. It reports whether there is something to suggest.
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

// defaultTable is the table that a query without FROM is assumed to read.
const defaultTable = "events"
