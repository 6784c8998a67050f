// Package budget bounds what one compile may cost. One Budget is passed through all stages, which spend from it before a tree or a text grows, so
// that a short query that expands to a huge one is stopped at once, whatever the cause.
package budget

import (
	"iter"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
)

// The limits of one compile, over all stages. Queries written by people need about a hundredth of them, queries written by programs a tenth.
const (
	// MaxNodes bounds the nodes of all trees together: parsed, bound, resolved and printed. At the limit they take about 50 ms and 40 MB.
	MaxNodes = 300_000
	// MaxColumns bounds the columns of all SELECTs together, after asterisks are expanded: each has names and types, and the SELECTs around it
	// look names up among them.
	MaxColumns = 20_000
	// MaxBytes bounds the texts: column names, placeholder values, the SQL with its parameters, and the HogQL in the answer.
	MaxBytes = 16 << 20
	// MaxHints bounds how many names are compared with misspelled ones to find the nearest. Beyond it, mistakes have no hints.
	MaxHints = 20_000
)

// The limits on parts of a query that are cheap to compile but slow to plan in ClickHouse.
const (
	// MaxSelects bounds the SELECTs of a query. ClickHouse inlines a CTE at each use, so a chain of CTEs that each use the previous one twice
	// doubles with every link; planning a thousand SELECTs takes it seconds.
	MaxSelects = 500
	// MaxTables bounds the subqueries that read a table and the joins of a query, including those that a person or a group of an event needs; each use
	// of a CTE counts them again.
	MaxTables = 2_000
	// MaxGrown bounds the columns and properties that a query reads from one joined or merged table: each property of native JSON is several
	// sub-columns, and two thousand of a joined person take ClickHouse ten seconds.
	MaxGrown = 500
	// MaxPaths bounds the paths in native JSON that all SELECTs of a query read, each type of a property counted: each is a sub-column, and planning
	// three thousand takes ClickHouse one to three seconds, in which nothing can stop it.
	MaxPaths = 3_000
	// MaxExpanded bounds the nodes of a SELECT after each alias is inlined at its uses, as ClickHouse does: four million take it two seconds.
	MaxExpanded = 500_000
	// MaxKeys bounds the keys of a clause, and the keys of all windows together: ClickHouse's planning time for GROUP BY is quadratic in them, and
	// four thousand window keys take it seconds.
	MaxKeys = 1_000
	// MaxSQL bounds the SQL in bytes, and MaxParams its parameters: ClickHouse takes seconds to read more.
	MaxSQL    = 1 << 20
	MaxParams = 10_000
)

// step is how much is spent between two calls of expired: about a millisecond of work.
const step = 4096

// bytesPerStep is how many bytes count as one node towards the next call of expired.
const bytesPerStep = 64

// stepsPerHint is how many nodes a comparison of two names counts as.
const stepsPerHint = 4

// Budget is what one compile has left to spend. A nil Budget has no limits: it is for texts of the program itself. When a budget is overspent,
// its methods panic with a Stop, which the caller that made the Budget recovers with Catch.
type Budget struct {
	nodes, columns, bytes, hints int

	until   int // steps until expired is called again
	expired func() error
}

// Stop is the panic value that ends a compile. Err is a *diag.Error for the author of the query, or what Expired returned.
type Stop struct{ Err error }

// New returns the budget of one compile. expired is called regularly, and an error from it ends the compile; it may be nil.
func New(expired func() error) *Budget {
	return &Budget{nodes: MaxNodes, columns: MaxColumns, bytes: MaxBytes, hints: MaxHints, until: step, expired: expired}
}

// Nodes spends n nodes of a tree.
func (b *Budget) Nodes(n int) {
	if b == nil {
		return
	}
	if n > b.nodes {
		stop("The query is too large: it grows beyond %d parts once its common table expressions, asterisks, filters and macros "+
			"are expanded.", MaxNodes)
	}
	b.nodes -= n
	b.work(n)
}

// Columns spends n columns of a SELECT.
func (b *Budget) Columns(n int) {
	if b == nil {
		return
	}
	if n > b.columns {
		stop("The query is too large: it grows beyond %d columns once its common table expressions and asterisks are expanded.",
			MaxColumns)
	}
	b.columns -= n
	b.work(n)
}

// Bytes spends n bytes of text.
func (b *Budget) Bytes(n int) {
	if b == nil {
		return
	}
	if n > b.bytes {
		stop("The query is too large: its texts grow beyond %d MiB once its placeholders and filters are filled in.", MaxBytes>>20)
	}
	b.bytes -= n
	b.work(n / bytesPerStep)
}

// Work records n steps that produce nothing, such as comparing names in a list. They only count as time.
func (b *Budget) Work(n int) {
	if b != nil {
		b.work(n)
	}
}

func (b *Budget) work(n int) {
	if b.until -= n; b.until > 0 {
		return
	}
	b.until = step
	if b.expired == nil {
		return
	}
	if err := b.expired(); err != nil {
		panic(Stop{err})
	}
}

// Hints yields the names until the hints are used up. It is for searches for the nearest name.
func (b *Budget) Hints(names iter.Seq[string]) iter.Seq[string] {
	if b == nil {
		return names
	}
	return func(yield func(string) bool) {
		for name := range names {
			if b.hints == 0 {
				return
			}
			b.hints--
			b.work(stepsPerHint)
			if !yield(name) {
				return
			}
		}
	}
}

// WithoutHints sets the hints to zero, for a compile whose mistakes nobody reads.
func (b *Budget) WithoutHints() *Budget {
	b.hints = 0
	return b
}

// Catch turns a Stop into an error. It must be deferred.
func Catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case Stop:
		*err = r.Err
	default:
		panic(r)
	}
}

func stop(format string, args ...any) {
	panic(Stop{diag.New(diag.QueryError, diag.Span{}, format, args...)})
}
