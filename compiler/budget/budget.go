// Package budget bounds what one compile may cost. One Budget goes through all stages, which spend from it before a tree or a
// text grows, so that a short query that stands for a huge one ends at once, whatever makes it grow.
package budget

import (
	"iter"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
)

// What one compile may make, over all of its stages. A query that people write needs a hundredth of it, one that a program writes
// a tenth.
const (
	// MaxNodes bounds the parts of all trees together: those that are parsed, bound, resolved and printed. So many take about
	// 50 ms and 40 MB.
	MaxNodes = 300_000
	// MaxColumns bounds the columns of all SELECTs together, once asterisks are expanded: each holds names and types, and the
	// SELECTs around it look names up among them.
	MaxColumns = 20_000
	// MaxBytes bounds the texts: names of columns, values of placeholders, the SQL with its parameters, and the HogQL that the
	// answer shows.
	MaxBytes = 16 << 20
	// MaxHints bounds the names that a mistake's name is compared with to find the nearest. Beyond it, mistakes have no hints.
	MaxHints = 20_000
)

// What one query may hold that ClickHouse takes long to plan, however little it costs to compile.
const (
	// MaxSelects bounds the SELECTs of a query. ClickHouse puts a CTE in place of each use, so that CTEs which use others
	// twice would double with each one; and a thousand SELECTs take it seconds to plan.
	MaxSelects = 500
	// MaxGrown bounds what a query reads of one table that it joins or merges: each property of native JSON is several
	// sub-columns, and ClickHouse takes ten seconds for two thousand of a joined person.
	MaxGrown = 500
	// MaxExpanded bounds the parts of a SELECT once each alias is put in place of its uses, as ClickHouse has it: four million
	// take it two seconds.
	MaxExpanded = 500_000
	// MaxKeys bounds the keys of a clause, and those of all windows: the time that ClickHouse takes to plan GROUP BY grows with their
	// square, and four thousand keys of windows take it seconds.
	MaxKeys = 1_000
	// MaxSQL bounds the SQL in bytes, MaxParams its parameters: what is longer takes ClickHouse seconds to read.
	MaxSQL    = 1 << 20
	MaxParams = 10_000
)

// step is how much is spent between two calls of Expired: about a millisecond of work.
const step = 4096

// bytesPerStep is how many bytes count as much as a node on the way to the next call of Expired.
const bytesPerStep = 64

// stepsPerHint is how many nodes a comparison of two names counts as on that way.
const stepsPerHint = 4

// Budget is what is left to one compile. A nil Budget bounds nothing: it is for texts of the program itself. Its methods end the
// compile by a panic with a Stop when the budget is overspent; the caller that made the Budget recovers it.
type Budget struct {
	nodes, columns, bytes, hints int

	until   int // Expired is asked again
	expired func() error
}

// Stop is the panic value that ends a compile. Err is a *diag.Error for the author of the query, or what Expired returned.
type Stop struct{ Err error }

// New returns the budget of one compile. Expired is called now and then; an error ends the compile;
// nil is never.
func New(expired func() error) *Budget {
	return &Budget{nodes: MaxNodes, columns: MaxColumns, bytes: MaxBytes, hints: MaxHints, until: step, expired: expired}
}

// Nodes spends n parts of a tree.
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

// Work notes n steps that make nothing, such as looks at names in a list. They cost time alone.
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

// Hints yields the names as long as there is a hint left for each. They are for those who look for the nearest of the names.
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

// WithoutHints leaves no names to look for hints among: for a compile whose mistakes nobody reads.
func (b *Budget) WithoutHints() *Budget {
	b.hints = 0
	return b
}

// Catch turns a Stop into an error. It is deferred.
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
