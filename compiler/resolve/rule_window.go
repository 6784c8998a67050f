package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// lagLead resolves lag and lead as in PostgreSQL: without a frame of rows they see the whole partition, and outside of it they return NULL.
func (s *scope) lagLead(c *calling) resolved.Expr {
	args := s.arguments(c)
	value, typ := args[0], typeOf(args[0])
	args[0] = native(nullable(typ), args[0].At(), "toNullable", args[0])
	return &resolved.Native{Pos: c.Pos, Name: c.f.ClickHouse(), Args: args, Over: s.wholePartition(c.Over, value), Type: nullable(typ)}
}

// wholePartition returns a window with a frame of all rows, unless it has a frame of rows. A window without an order is ordered by x, which is
// resolved.
func (s *scope) wholePartition(w *hogql.Window, x resolved.Expr) *resolved.Window {
	if named := w.Name.Text; named != "" {
		s.r.spend.Work(len(s.windows))
		for _, n := range s.windows {
			if n.Name.Text == named && n.Window != nil {
				whole := *n.Window
				if len(w.OrderBy) > 0 {
					whole.OrderBy = w.OrderBy
				}
				if w.Frame != nil {
					whole.Frame = w.Frame
				}
				w = &whole
				break
			}
		}
	}
	out := s.over(w)
	out.Name = ""
	if len(out.OrderBy) == 0 {
		out.OrderBy = []*resolved.Order{{X: x}}
	}
	if out.Frame == nil || out.Frame.Range {
		out.Frame = &resolved.Frame{Start: resolved.Bound{Kind: hogql.UnboundedPreceding}, End: resolved.Bound{Kind: hogql.UnboundedFollowing}}
	}
	return out
}
