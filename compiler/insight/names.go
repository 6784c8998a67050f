package insight

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Known refuses an author's expression over events if it uses a name that neither events nor the expression defines. Such a name would
// otherwise refer to a column of the query around the expression. attr is the field that has the expression. The error is a *diag.Error.
func (w *World) Known(e hogql.Expr, attr string) error {
	events, ok := w.Database.Table("events")
	if !ok {
		panic("BUG: there is no table of events")
	}
	own := map[string]bool{"events": true, "e": true}
	var fields []*hogql.Field
	hogql.WalkExpr(e, func(e hogql.Expr) bool {
		if _, inner := e.(*hogql.Subquery); inner {
			return false // its names do not count here
		}
		if alias, ok := e.(*hogql.Alias); ok {
			own[alias.Name.Text] = true
		}
		if lambda, ok := e.(*hogql.Lambda); ok {
			for _, name := range lambda.Params {
				own[name] = true
			}
		}
		if field, ok := e.(*hogql.Field); ok {
			fields = append(fields, field)
		}
		return true
	})
	for _, f := range fields {
		name := f.Chain[0].Text
		if _, known := w.Database.Field(events, name); known || own[name] {
			continue
		}
		mistake := diag.Field(diag.QueryError, attr, "Unable to resolve field: %s", name)
		mistake.Hint = schema.Nearest(name, w.Spend.Hints(w.Database.FieldNames(events)))
		return mistake
	}
	return nil
}
