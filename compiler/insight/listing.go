package insight

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Listing is a list of rows, of events, actors or groups, that is ready to be compiled and run.
type Listing struct {
	// Query asks for one row more than Limit.
	Query  hogql.Query
	Limit  int
	Offset int
	// Columns are the names of the columns.
	Columns []string
	// Types are the types of columns in the answer, by index, where they differ from the query's.
	Types map[int]string
	// Row turns a row of the query into a row of the answer, both JSON arrays; nil if they are the same.
	Row func(row []byte) ([]byte, error)
	// Missing reports whether a row of the answer is about an actor of whom nothing is known; nil for lists without actors.
	Missing func(row []byte) (bool, error)
}

// UserExpr parses an expression of one of a list's fields. The error is a *diag.Error with the given attr.
func (w *World) UserExpr(text, attr string) (hogql.Expr, error) {
	e, mistake := filter.UserExpr(text, w.Spend)
	if mistake != nil {
		return nil, diag.Field(mistake.Code, attr, "The HogQL expression %s", mistake.Detail)
	}
	return e, nil
}

// Aggregates reports whether an expression is computed over several rows, directly or because it names one of columns that is.
func Aggregates(e hogql.Expr, columns ...hogql.Expr) bool {
	found := false
	hogql.WalkExpr(e, func(e hogql.Expr) bool {
		if _, inner := e.(*hogql.Subquery); inner {
			return false
		}
		if call, ok := e.(*hogql.Call); ok && call.Over == nil {
			f, known := schema.LookupFunction(call.Name)
			found = found || known && f.Aggregate
		}
		if name, ok := e.(*hogql.Field); ok && len(name.Chain) == 1 {
			for _, column := range columns {
				alias, named := column.(*hogql.Alias)
				found = found || named && alias.Name.Text == name.Chain[0].Text && Aggregates(alias.X)
			}
		}
		return !found
	})
	return found
}

// Spreads reports whether an expression stands for several columns, such as *.
func Spreads(e hogql.Expr) bool {
	_, star := Bare(e).(*hogql.Star)
	_, matching := Bare(e).(*hogql.ColumnsMatching)
	return star || matching
}

// Bare returns an expression without its alias.
func Bare(e hogql.Expr) hogql.Expr {
	if alias, ok := e.(*hogql.Alias); ok {
		return alias.X
	}
	return e
}

// Direction cuts ASC or DESC off the end of an expression's text.
func Direction(text string) (expr string, desc bool) {
	text = strings.TrimSpace(text)
	i := strings.LastIndexAny(text, " \t\n)")
	switch word := strings.ToLower(text[i+1:]); {
	case i < 0:
	case word == "desc":
		return text[:i+1], true
	case word == "asc":
		return text[:i+1], false
	}
	return text, false
}

// Unplaced replaces positions in an order, such as 2, by the columns that they stand for. A position without a column stays.
func Unplaced(order []*hogql.Order, columns []hogql.Expr) []*hogql.Order {
	out := slices.Clone(order)
	for i, o := range out {
		if c, ok := o.X.(*hogql.Const); ok {
			if n, whole := c.Value.(int64); whole && n >= 1 && n <= int64(len(columns)) {
				placed := *o
				placed.X = Bare(columns[n-1])
				out[i] = &placed
			}
		}
	}
	return out
}

// Total adds missing keys to an order, so that no two rows are equal in it, and no page repeats a row. Keys are the same if their texts are.
func Total(order []*hogql.Order, keys ...*hogql.Order) []*hogql.Order {
	for _, key := range keys {
		text := hogql.PrintExpr(key.X)
		if !slices.ContainsFunc(order, func(o *hogql.Order) bool { return hogql.PrintExpr(o.X) == text }) {
			order = append(order, key)
		}
	}
	return order
}

// ascending returns an order by keys, without those that are the same for all rows.
func ascending(keys []hogql.Expr) []*hogql.Order {
	var order []*hogql.Order
	for _, key := range keys {
		if _, constant := key.(*hogql.Const); !constant {
			order = append(order, &hogql.Order{X: key})
		}
	}
	return order
}

// Page completes a SELECT of columns in an order for a page of rows, and one row more. If a column or HAVING aggregates, rows are grouped by the other
// columns, and ordered by them last; otherwise unique, which no two rows share, orders them last.
func Page(s *hogql.Select, unique *hogql.Order, limit, offset int) {
	aggregates := s.Having != nil
	var keys []hogql.Expr
	for _, column := range s.Columns {
		if Aggregates(column) {
			aggregates = true
		} else {
			keys = append(keys, Bare(column))
		}
	}
	if aggregates {
		s.GroupBy = GroupBy(keys...)
		s.OrderBy = Total(s.OrderBy, ascending(keys)...)
	} else {
		s.OrderBy = Total(s.OrderBy, unique)
	}
	s.Limit = &hogql.Limit{N: Const(int64(limit) + 1)}
	if offset > 0 {
		s.Limit.Offset = Const(int64(offset))
	}
}

// rowName is the name of a whole row in Once. No column of a page has it.
const rowName = "_row"

// Once returns the rows of a page that runs only once, however often they are read: as an array that is a constant of the query around it.
// Reading a query twice could return different rows, and take twice the time. All columns of the page must be named.
func Once(page *hogql.Select) hogql.Query {
	row, whole := &hogql.Select{}, &hogql.Tuple{}
	for i, column := range page.Columns {
		name := column.(*hogql.Alias).Name.Text
		whole.Items = append(whole.Items, Field(name))
		row.Columns = append(row.Columns, As(&hogql.Element{X: Field(rowName), N: i + 1}, name))
	}
	rows := &hogql.Subquery{Query: &hogql.Select{Columns: []hogql.Expr{Call("groupArray", whole)}, From: From(page)}}
	row.From = From(&hogql.Select{Columns: []hogql.Expr{As(Call("arrayJoin", rows), rowName)}})
	return row
}
