// Package resolved is the tree of a query after all its names are resolved: text ─▶ parse ─▶ bind ─▶ resolve ─▶ [tree] ─▶ print.
//
// It is separate from the tree of package hogql, so that nothing that the resolver must remove can remain in it: it has no nodes for field
// chains, placeholders, asterisks, or functions under the names that their authors wrote, and its nodes have no children of another tree. Code that
// passes such a node to the printer does not compile. Alternative spellings in HogQL have no nodes here either: a join has no USING, a SELECT no
// PREWHERE, a table function no name.
package resolved

import "github.com/caddy-analytics/caddy-analytics/compiler/hogql"

// The interfaces are sealed: other packages cannot add nodes.

// Expr is anything that has a value.
//
//sumtype:decl
type Expr interface {
	At() hogql.Span
	expr()
}

// Query is a SELECT or several of them joined by set operators.
//
//sumtype:decl
type Query interface {
	At() hogql.Span
	query()
}

// Table is anything that can be in FROM.
//
//sumtype:decl
type Table interface{ table() }

// Expressions.
type (
	// Const is a literal. It has the form of a hogql.Const, so that a pointer to one converts to it without a copy.
	Const hogql.Const
	// Column is a column of a table in FROM. Table is the alias of that table in FROM, empty for the only one. Path leads into a native JSON
	// column, one element per key.
	Column struct {
		Pos   hogql.Span
		Table string
		Name  string
		Path  []string
		Kind  PathKind
		Type  hogql.Type
	}
	// LambdaParam is the use of a lambda's parameter.
	LambdaParam struct {
		Pos  hogql.Span
		Name string
		Type hogql.Type
	}
	// AliasRef is a use of a column alias in the SELECT that defines it. Const is the constant that the alias stands for, nil for anything else.
	AliasRef struct {
		Pos   hogql.Span
		Name  string
		Type  hogql.Type
		Const *Const
	}
	// Native is a call of a ClickHouse function by its own name. Over is nil if it is not a window function.
	Native struct {
		Pos      hogql.Span
		Name     string
		Params   []Expr
		Args     []Expr
		Distinct bool
		Over     *Window
		Type     hogql.Type
	}
	// Logic is AND or OR over two or more operands.
	Logic struct {
		Pos  hogql.Span
		Or   bool
		Args []Expr
	}
	// Tuple is tuple(a, b).
	Tuple struct {
		Pos   hogql.Span
		Items []Expr
	}
	// Array is [a, b].
	Array struct {
		Pos   hogql.Span
		Items []Expr
	}
	// Lambda is (x, y) -> body.
	Lambda struct {
		Pos    hogql.Span
		Params []string
		Body   Expr
	}
	// Subquery is a query used as a value or as the right side of IN. Type is that of the value; unknown for most.
	Subquery struct {
		Pos   hogql.Span
		Query Query
		Type  hogql.Type
	}
	// Alias is expr AS name.
	Alias struct {
		Pos  hogql.Span
		X    Expr
		Name string
	}
)

// PathKind says which view of a JSON path a Column reads.
type PathKind uint8

// The views of a JSON path.
const (
	PathDynamic PathKind = iota // the value at the path, of ClickHouse's Dynamic type
	PathObject                  // the object below the path, of ClickHouse's JSON type
	PathString                  // the value if it is a String, otherwise NULL
	PathInt                     // the value if it is an Int64, otherwise NULL
	PathFloat                   // the value if it is a Float64, otherwise NULL
	PathBool                    // the value if it is a Bool, otherwise NULL
)

// Queries.
type (
	// Select is one SELECT. A nil field means that the clause is absent.
	Select struct {
		Pos       hogql.Span
		With      []*CTE
		Recursive bool
		Distinct  bool
		Columns   []Expr
		From      Table
		ArrayJoin *ArrayJoin
		Where     Expr
		GroupBy   *GroupBy
		Having    Expr
		Windows   []*NamedWindow
		OrderBy   []*Order
		// Interpolate sets the values of the other columns in the rows that WITH FILL adds.
		Interpolate *Interpolate
		LimitBy     *LimitBy
		Limit       *Limit
	}
	// SetQuery joins two or more queries by set operators; Ops[i] comes before Members[i+1].
	SetQuery struct {
		Pos       hogql.Span
		With      []*CTE
		Recursive bool
		Members   []Query
		Ops       []hogql.SetOp
		OrderBy   []*Order
		Limit     *Limit
	}
)

// Tables.
type (
	// Scan reads one physical table. Guard restricts it to the rows of the project. It is nil only for tables without projects' rows.
	Scan struct {
		Table  string
		Alias  string
		Guard  Expr
		Sample *Sample
	}
	// Derived is a query in FROM.
	Derived struct {
		Query Query
		Alias string // empty if it has none
	}
	// CTERef is a use of a common table expression.
	CTERef struct{ Name, Alias string }
	// Numbers is numbers(n) or numbers(offset, n).
	Numbers struct {
		Args  []Expr
		Alias string
	}
	// Join joins two tables. On is nil for a cross join.
	Join struct {
		Kind        hogql.JoinKind
		Strictness  hogql.JoinStrictness
		Left, Right Table
		On          Expr
	}
)

// Parts of a query.
type (
	// CTE is a named query in WITH.
	CTE struct {
		Name  string
		Query Query
	}
	// ArrayJoin is [LEFT] ARRAY JOIN.
	ArrayJoin struct {
		Left   bool
		Arrays []*Alias
	}
	// GroupBy is GROUP BY; Mode says how its keys combine.
	GroupBy struct {
		Mode   hogql.GroupMode
		Keys   []Expr
		Sets   [][]Expr // GROUPING SETS
		Totals bool
	}
	// Order is one key of ORDER BY.
	Order struct {
		X     Expr
		Desc  bool
		Nulls hogql.NullsOrder
		Fill  *Fill
	}
	// Interpolate is INTERPOLATE; without Columns it covers all columns.
	Interpolate struct{ Columns []*InterpolatedColumn }
	// InterpolatedColumn is a column of INTERPOLATE, by its name in the SELECT; X is nil if it keeps its value.
	InterpolatedColumn struct {
		Name string
		X    Expr
	}
	// Fill is WITH FILL of an ORDER BY key.
	Fill struct{ From, To, Step Expr }
	// Limit is LIMIT n [OFFSET m]; N is nil for OFFSET alone.
	Limit struct {
		N, Offset Expr
		WithTies  bool
		Percent   bool
	}
	// LimitBy is LIMIT n [OFFSET m] BY keys.
	LimitBy struct {
		N, Offset Expr
		Keys      []Expr
	}
	// Sample is SAMPLE ratio [OFFSET ratio].
	Sample struct{ Ratio, Offset Expr }
	// Window is OVER (…), or OVER name when Name is set.
	Window struct {
		Name        string
		PartitionBy []Expr
		OrderBy     []*Order
		Frame       *Frame
	}
	// NamedWindow is one entry of the WINDOW clause.
	NamedWindow struct {
		Name   string
		Window *Window
	}
	// Frame is ROWS or RANGE between two bounds; End.Kind is FrameNone if there is only one.
	Frame struct {
		Range      bool
		Start, End Bound
	}
	// Bound is one end of a frame; N is set for the two kinds with a count.
	Bound struct {
		Kind hogql.BoundKind
		N    Expr
	}
)

func (n *Const) At() hogql.Span       { return n.Pos }
func (n *Column) At() hogql.Span      { return n.Pos }
func (n *LambdaParam) At() hogql.Span { return n.Pos }
func (n *AliasRef) At() hogql.Span    { return n.Pos }
func (n *Native) At() hogql.Span      { return n.Pos }
func (n *Logic) At() hogql.Span       { return n.Pos }
func (n *Tuple) At() hogql.Span       { return n.Pos }
func (n *Array) At() hogql.Span       { return n.Pos }
func (n *Lambda) At() hogql.Span      { return n.Pos }
func (n *Subquery) At() hogql.Span    { return n.Pos }
func (n *Alias) At() hogql.Span       { return n.Pos }
func (n *Select) At() hogql.Span      { return n.Pos }
func (n *SetQuery) At() hogql.Span    { return n.Pos }

func (*Const) expr()       {}
func (*Column) expr()      {}
func (*LambdaParam) expr() {}
func (*AliasRef) expr()    {}
func (*Native) expr()      {}
func (*Logic) expr()       {}
func (*Tuple) expr()       {}
func (*Array) expr()       {}
func (*Lambda) expr()      {}
func (*Subquery) expr()    {}
func (*Alias) expr()       {}

func (*Select) query()   {}
func (*SetQuery) query() {}

func (*Scan) table()    {}
func (*Derived) table() {}
func (*CTERef) table()  {}
func (*Numbers) table() {}
func (*Join) table()    {}
