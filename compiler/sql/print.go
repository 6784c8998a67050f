// Package sql prints a resolved tree as ClickHouse SQL: tree ─▶ [sql] ─▶ text and parameters.
//
// It is the last gate before the engine and trusts no earlier stage: it only prints functions on the allow-list and physical tables of the
// schema, each with its project guard, and it binds every string as a parameter (contract: hogql.md, section 15). Anything else is a bug in an
// earlier stage; nodes that the resolver should have removed do not compile here.
package sql

import (
	"fmt"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Param is one bound parameter, written {Name:Type} in the text.
type Param struct {
	Name, Type string
	// Value is in the form that ClickHouse reads as Type: a String unchanged, an Array as ClickHouse's array literal. The transport escapes it as
	// its protocol requires.
	Value string
}

// bug is a panic value for something that an earlier stage should have refused.
type bug string

// mistake is a panic value that ends printing because of something that the query's author can mend.
type mistake struct{ err *diag.Error }

// Print prints q for the project of db. The error is a *diag.Error if the author of the query can mend it, and otherwise a bug: a function that
// is not allowed, a table that is not physical, a scan without its guard. Print spends from the budget of the compile.
func Print(q resolved.Query, db *schema.Database, spend *budget.Budget) (text string, params []Param, err error) {
	p := printer{db: db, spend: spend, buf: make([]byte, 0, 512), names: make([]string, 0, 8)}
	defer p.recover(&err)
	p.query(q)
	return string(p.buf), p.params, nil
}

// Tables returns the sorted names of the physical tables that q reads, each once. Its error is that of Print.
func Tables(q resolved.Query, db *schema.Database, spend *budget.Budget) (names []string, err error) {
	p := printer{db: db, spend: spend, tables: []string{}}
	defer p.recover(&err)
	p.query(q)
	slices.Sort(p.tables)
	return slices.Compact(p.tables), nil
}

// recover turns the printer's own panics into an error.
func (*printer) recover(err *error) {
	switch r := recover().(type) {
	case nil:
	case bug:
		*err = fmt.Errorf("BUG: printing SQL: %s", string(r))
	case mistake:
		*err = r.err
	default:
		panic(r)
	}
}

type printer struct {
	db     *schema.Database
	spend  *budget.Budget
	buf    []byte
	params []Param
	lookup map[paramKey]int // index in params; only used when there are many
	scope  *scope
	refs   int      // uses of aliases so far
	paths  int      // paths in native JSON that all SELECTs so far read
	names  []string // the aliases of the SELECTs around the current place, outermost first
	ctes   []cte
	tables []string // the physical tables printed; nil if not asked for
}

// cte is a common table expression in scope: its name in the query, and its printed name.
type cte struct{ name, printed string }

func (p *printer) str(s string) { p.buf = append(p.buf, s...) }

func (p *printer) byte(b byte) { p.buf = append(p.buf, b) }

func (p *printer) bug(format string, args ...any) {
	panic(bug(fmt.Sprintf(format, args...)))
}

// checkSize ends the printing of a text that is too large: a macro or a property can make a short query long.
func (p *printer) checkSize(at hogql.Span) {
	p.spend.Nodes(1)
	if len(p.params) > budget.MaxParams {
		panic(mistake{diag.New(diag.QueryError, at, "The query is too large: it has more than %d different texts and times. "+
			"A list of constants, as in x IN ('a', 'b'), counts as one.", budget.MaxParams)})
	}
	if len(p.buf) > budget.MaxSQL {
		panic(mistake{diag.New(diag.QueryError, at, "The query is too large: it compiles to more than %d bytes of SQL.", budget.MaxSQL)})
	}
}
