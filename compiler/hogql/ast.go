// Package hogql parses and prints the HogQL dialect: text ─▶ [lexer ─▶ parser] ─▶ tree, and tree ─▶ text.
package hogql

import "github.com/caddy-analytics/caddy-analytics/compiler/diag"

// Span is a range of bytes in the text of a query.
type Span = diag.Span

// The nodes of the tree, in the order in which every switch of the compiler lists them. The interfaces are sealed: other packages cannot add
// nodes. A stage never modifies a node that it is given; it makes a new one.

// Expr is anything that has a value.
//
//sumtype:decl
type Expr interface {
	At() Span
	expr()
}

// Query is a whole SELECT or several of them joined by set operators.
//
//sumtype:decl
type Query interface {
	At() Span
	query()
}

// Table is anything that can be in FROM.
//
//sumtype:decl
type Table interface {
	At() Span
	table()
}

// Expressions.
type (
	// Const is a literal: nil, bool, int64, uint64, float64, string, time.Time or a []any of these. Times, lists and
	// values of other Go types come from placeholders only.
	Const struct {
		Pos   Span
		Value any
	}
	// Field is a chain of names as written: a column, an alias, a table's column or a property path.
	// Array indexes inside a property path (properties.list.1) are kept as decimal text with Index set.
	Field struct {
		Pos   Span
		Chain []Name
	}
	// Star is * or t.*, with the columns listed in EXCLUDE, as a or t.a, and the columns computed in REPLACE. Columns reports whether it is
	// inside COLUMNS(…), where * covers all tables, and Spread whether that is *COLUMNS(…), whose columns are arguments of a function.
	Star struct {
		Pos             Span
		Columns, Spread bool
		Table           []Name
		Exclude         [][]Name
		Replace         []*Alias
	}
	// ColumnsMatching is COLUMNS('regex'), or *COLUMNS('regex') as arguments of a function.
	ColumnsMatching struct {
		Pos     Span
		Pattern string
		Spread  bool
	}
	// Call is a function call under the name that its author wrote. Params is nil for f(x) and set for f(p)(x).
	Call struct {
		Pos      Span
		Name     string
		NamePos  Span
		Params   []Expr
		Args     []Expr
		Distinct bool
		OrderBy  []*Order // agg(x ORDER BY y)
		Filter   Expr     // agg(x) FILTER (WHERE e)
		Over     *Window  // nil when it is not a window function
	}
	// Unary is NOT x or -x.
	Unary struct {
		Pos Span
		Op  UnaryOp
		X   Expr
	}
	// Binary is an arithmetic operator.
	Binary struct {
		Pos         Span
		Op          BinaryOp
		Left, Right Expr
	}
	// Compare is a comparison that never returns NULL (contract: hogql.md, section 10).
	Compare struct {
		Pos         Span
		Op          CompareOp
		Left, Right Expr
	}
	// Logic is AND or OR over two or more operands.
	Logic struct {
		Pos  Span
		Or   bool
		Args []Expr
	}
	// Between is x [NOT] BETWEEN low AND high.
	Between struct {
		Pos          Span
		X, Low, High Expr
		Not          bool
	}
	// Case is CASE [x] WHEN … THEN … [ELSE …] END; X and Else may be nil.
	Case struct {
		Pos   Span
		X     Expr
		Whens []When
		Else  Expr
	}
	// Cast is CAST(x AS type) or x::type, with the type's name in lower case.
	Cast struct {
		Pos     Span
		X       Expr
		Type    string
		TypePos Span
	}
	// Tuple is (a, b); one element is written (a,).
	Tuple struct {
		Pos   Span
		Items []Expr
	}
	// Array is [a, b].
	Array struct {
		Pos   Span
		Items []Expr
	}
	// Dict is {k: v}; Keys and Values have the same length.
	Dict struct {
		Pos          Span
		Keys, Values []Expr
	}
	// Lambda is (x, y) -> body.
	Lambda struct {
		Pos    Span
		Params []string
		Body   Expr
	}
	// Index is x[i]; NullSafe is x?.[i].
	Index struct {
		Pos      Span
		X, Index Expr
		NullSafe bool
	}
	// Slice is x[from:to]; either bound may be nil.
	Slice struct {
		Pos         Span
		X, From, To Expr
	}
	// Element is t.1 on anything but a plain field chain.
	Element struct {
		Pos      Span
		X        Expr
		N        int
		NullSafe bool
	}
	// Member is x.name on anything but a plain field chain, or x?.name.
	Member struct {
		Pos      Span
		X        Expr
		Name     Name
		NullSafe bool
	}
	// Interval is INTERVAL n unit; Unit is second, minute, hour, day, week, month, quarter or year.
	Interval struct {
		Pos  Span
		N    Expr
		Unit string
	}
	// Placeholder is {expression}, to be filled in before names are resolved.
	Placeholder struct {
		Pos Span
		X   Expr
	}
	// Subquery is a query used as a value or as the right side of IN.
	Subquery struct {
		Pos   Span
		Query Query
	}
	// Alias is expr AS name.
	Alias struct {
		Pos  Span
		X    Expr
		Name Name
	}
)

// Name is an identifier with its place. Quoted reports whether it was written in quotes or brackets, Double whether in double quotes, Index
// whether it is a number in a path.
type Name struct {
	Pos    Span
	Text   string
	Quoted bool
	Double bool
	Index  bool
}

// When is one branch of a Case.
type When struct{ If, Then Expr }

// UnaryOp is an operator with one operand.
type UnaryOp uint8

// The unary operators.
const (
	Not UnaryOp = iota
	Negate
)

// BinaryOp is an arithmetic operator.
type BinaryOp uint8

// The arithmetic operators. Divide always returns a float.
const (
	Plus BinaryOp = iota
	Minus
	Multiply
	Divide
	Modulo
)

// CompareOp is a comparison operator.
type CompareOp uint8

// The comparison operators. IS [NOT] NULL and IS [NOT] DISTINCT FROM are Equals and NotEquals.
const (
	Equals CompareOp = iota
	NotEquals
	Less
	LessOrEquals
	Greater
	GreaterOrEquals
	In
	NotIn
	InCohort
	NotInCohort
	Like
	NotLike
	ILike
	NotILike
	Match
	NotMatch
	IMatch
	NotIMatch
)

// Queries.
type (
	// Select is one SELECT. A nil field means that the clause is absent.
	Select struct {
		Pos       Span
		With      []*CTE
		Recursive bool
		Distinct  bool
		Columns   []Expr
		From      Table
		ArrayJoin *ArrayJoin
		Prewhere  Expr
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
	// SetQuery joins two or more queries by set operators, in text order; Ops[i] comes before Members[i+1]. ByName reports which operators are
	// BY NAME; it is nil if none is.
	SetQuery struct {
		Pos       Span
		With      []*CTE
		Recursive bool
		Members   []Query
		Ops       []SetOp
		ByName    []bool
		OrderBy   []*Order
		Limit     *Limit
	}
	// QueryPlaceholder is a {placeholder} that stands for a whole query.
	QueryPlaceholder struct {
		Pos Span
		X   Expr
	}
)

// SetOp is a set operator.
type SetOp uint8

// The set operators.
const (
	UnionAll SetOp = iota
	UnionDistinct
	Intersect
	IntersectDistinct
	Except
)

// Tables.
type (
	// TableName is a table by its name, or a CTE.
	TableName struct {
		Pos     Span
		Chain   []Name
		Alias   Name   // zero when there is none
		Columns []Name // names for its first columns
		Sample  *Sample
		// Group is the only group type whose rows are read; nil for all. Texts cannot say it: the condition on the type is in WHERE.
		Group *int
	}
	// TableFunc is a table function such as numbers(10).
	TableFunc struct {
		Pos     Span
		Name    Name
		Args    []Expr
		Alias   Name
		Columns []Name
	}
	// Derived is a query in FROM, with its alias and column names if given.
	Derived struct {
		Pos     Span
		Query   Query
		Alias   Name
		Columns []Name
	}
	// TablePlaceholder is a {placeholder} in FROM.
	TablePlaceholder struct {
		Pos   Span
		X     Expr
		Alias Name
	}
	// Join joins two tables. Exactly one of On and Using is set, neither for a cross join. Right is a Join if it is in parentheses.
	Join struct {
		Pos         Span
		Kind        JoinKind
		Strictness  JoinStrictness
		Left, Right Table
		On          Expr
		Using       []Name
	}
)

// JoinKind says which unmatched rows a join keeps.
type JoinKind uint8

// The kinds of join.
const (
	InnerJoin JoinKind = iota
	LeftJoin
	RightJoin
	FullJoin
	CrossJoin
)

// JoinStrictness says how many matches of a row a join returns.
type JoinStrictness uint8

// The strictnesses of joins; JoinDefault prints nothing.
const (
	JoinDefault JoinStrictness = iota
	JoinAll
	JoinAny
	JoinAsof
	JoinSemi
	JoinAnti
)

// Parts of a query.
type (
	// CTE is a named query in WITH (Query set) or a named value (X set).
	CTE struct {
		Pos     Span
		Name    Name
		Columns []Name
		Query   Query
		X       Expr
	}
	// ArrayJoin is [LEFT] ARRAY JOIN; each expression has an alias.
	ArrayJoin struct {
		Pos    Span
		Left   bool
		Arrays []*Alias
	}
	// GroupBy is GROUP BY; Mode says how its keys combine.
	GroupBy struct {
		Pos    Span
		Mode   GroupMode
		Keys   []Expr
		Sets   [][]Expr // GROUPING SETS
		Totals bool
	}
	// Order is one key of ORDER BY.
	Order struct {
		Pos   Span
		X     Expr
		Desc  bool
		Nulls NullsOrder
		Fill  *Fill
	}
	// Interpolate is INTERPOLATE (column [AS expression], …). Without Columns it is a bare INTERPOLATE, which covers every column.
	Interpolate struct {
		Pos     Span
		Columns []*InterpolatedColumn
	}
	// InterpolatedColumn is a column of INTERPOLATE. X is nil if it has no expression and keeps its value.
	InterpolatedColumn struct {
		Name Name
		X    Expr
	}
	// Fill is WITH FILL of an ORDER BY key.
	Fill struct{ From, To, Step Expr }
	// Limit is LIMIT n [OFFSET m]; N is nil for OFFSET alone.
	Limit struct {
		Pos       Span
		N, Offset Expr
		WithTies  bool
		Percent   bool
	}
	// LimitBy is LIMIT n [OFFSET m] BY keys.
	LimitBy struct {
		Pos       Span
		N, Offset Expr
		Keys      []Expr
	}
	// Sample is SAMPLE ratio [OFFSET ratio].
	Sample struct {
		Pos           Span
		Ratio, Offset Expr
	}
	// Window is OVER (…), or OVER name when Name is set.
	Window struct {
		Pos         Span
		Name        Name
		PartitionBy []Expr
		OrderBy     []*Order
		Frame       *Frame
	}
	// NamedWindow is one entry of the WINDOW clause.
	NamedWindow struct {
		Pos    Span
		Name   Name
		Window *Window
	}
	// Frame is ROWS or RANGE between two bounds; End.Kind is FrameNone if only one was written.
	Frame struct {
		Pos        Span
		Range      bool
		Start, End Bound
	}
	// Bound is one end of a frame; N is set for the two kinds with a count.
	Bound struct {
		Kind BoundKind
		N    Expr
	}
)

// GroupMode says how the keys of GROUP BY combine.
type GroupMode uint8

// The modes of GROUP BY.
const (
	GroupKeys GroupMode = iota
	GroupCube
	GroupRollup
	GroupSets
	GroupAll
)

// NullsOrder says where NULLs sort.
type NullsOrder uint8

// The positions of NULLs; NullsDefault prints nothing.
const (
	NullsDefault NullsOrder = iota
	NullsFirst
	NullsLast
)

// BoundKind is the kind of a frame's end.
type BoundKind uint8

// The kinds of frame bounds.
const (
	FrameNone BoundKind = iota
	CurrentRow
	UnboundedPreceding
	UnboundedFollowing
	Preceding
	Following
)
