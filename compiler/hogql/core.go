package hogql

// Core is an Expr of the core form, which the resolver makes and the printer takes. A node that only a text has is none of them, so that
// a printer that switches over them cannot name one: it does not compile.
//
//sumtype:decl
type Core interface {
	Expr
	core()
}

// CoreQuery is a Query of the core form.
//
//sumtype:decl
type CoreQuery interface {
	Query
	coreQuery()
}

// CoreTable is a Table of the core form.
//
//sumtype:decl
type CoreTable interface {
	Table
	coreTable()
}

func (*Const) core()       {}
func (*Column) core()      {}
func (*LambdaParam) core() {}
func (*AliasRef) core()    {}
func (*Native) core()      {}
func (*Logic) core()       {}
func (*Tuple) core()       {}
func (*Array) core()       {}
func (*Lambda) core()      {}
func (*Subquery) core()    {}
func (*Alias) core()       {}

func (*Select) coreQuery()   {}
func (*SetQuery) coreQuery() {}

func (*Scan) coreTable()      {}
func (*Derived) coreTable()   {}
func (*TableName) coreTable() {}
func (*TableFunc) coreTable() {}
func (*Join) coreTable()      {}
