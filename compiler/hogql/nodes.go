package hogql

// The methods that make a node a member of its family. At is the node's place in the text.

func (n *Const) At() Span           { return n.Pos }
func (n *Field) At() Span           { return n.Pos }
func (n *Star) At() Span            { return n.Pos }
func (n *ColumnsMatching) At() Span { return n.Pos }
func (n *Call) At() Span            { return n.Pos }
func (n *Unary) At() Span           { return n.Pos }
func (n *Binary) At() Span          { return n.Pos }
func (n *Compare) At() Span         { return n.Pos }
func (n *Logic) At() Span           { return n.Pos }
func (n *Between) At() Span         { return n.Pos }
func (n *Case) At() Span            { return n.Pos }
func (n *Cast) At() Span            { return n.Pos }
func (n *Tuple) At() Span           { return n.Pos }
func (n *Array) At() Span           { return n.Pos }
func (n *Dict) At() Span            { return n.Pos }
func (n *Lambda) At() Span          { return n.Pos }
func (n *Index) At() Span           { return n.Pos }
func (n *Slice) At() Span           { return n.Pos }
func (n *Element) At() Span         { return n.Pos }
func (n *Member) At() Span          { return n.Pos }
func (n *Interval) At() Span        { return n.Pos }
func (n *Placeholder) At() Span     { return n.Pos }
func (n *Subquery) At() Span        { return n.Pos }
func (n *Alias) At() Span           { return n.Pos }

func (*Const) expr()           {}
func (*Field) expr()           {}
func (*Star) expr()            {}
func (*ColumnsMatching) expr() {}
func (*Call) expr()            {}
func (*Unary) expr()           {}
func (*Binary) expr()          {}
func (*Compare) expr()         {}
func (*Logic) expr()           {}
func (*Between) expr()         {}
func (*Case) expr()            {}
func (*Cast) expr()            {}
func (*Tuple) expr()           {}
func (*Array) expr()           {}
func (*Dict) expr()            {}
func (*Lambda) expr()          {}
func (*Index) expr()           {}
func (*Slice) expr()           {}
func (*Element) expr()         {}
func (*Member) expr()          {}
func (*Interval) expr()        {}
func (*Placeholder) expr()     {}
func (*Subquery) expr()        {}
func (*Alias) expr()           {}

func (n *Select) At() Span           { return n.Pos }
func (n *SetQuery) At() Span         { return n.Pos }
func (n *QueryPlaceholder) At() Span { return n.Pos }

func (*Select) query()           {}
func (*SetQuery) query()         {}
func (*QueryPlaceholder) query() {}

func (n *TableName) At() Span        { return n.Pos }
func (n *TableFunc) At() Span        { return n.Pos }
func (n *Derived) At() Span          { return n.Pos }
func (n *TablePlaceholder) At() Span { return n.Pos }
func (n *Join) At() Span             { return n.Pos }

func (*TableName) table()        {}
func (*TableFunc) table()        {}
func (*Derived) table()          {}
func (*TablePlaceholder) table() {}
func (*Join) table()             {}

// FloatOf returns the value of a Const as a float64, if it is a number.
func FloatOf(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
