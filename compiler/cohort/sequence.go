package cohort

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// The parts of a Sequence. Each event of a person is a number: its microseconds since the start of the window, times 4, plus its role: 1 if it can
// only be the first event, 2 both, 3 only the second. So when they are sorted, a possible first event comes before a second one of the same time.
const (
	item = "(_toMicroseconds(timestamp) - {origin}) * 4 + {role}"
	// passed reports whether a second event comes soon enough. Each item is paired with the time of the last possible first event before it; 0 if
	// there is none.
	passed = `arrayExists(items -> arrayExists(
		(x, t) -> x % 4 > 1 AND t > 0 AND intDiv(x, 4) - t <= {most},
		items, _arrayShiftRight(arrayFill(t -> t > 0, arrayMap(x -> if(x % 4 < 3, intDiv(x, 4), 0), items)), 1)
	), [{items}])`
)

// sequence requires an event followed by another, at the same time or up to most seconds later.
func (t tally) sequence(window interval, first, second entity, most int64) tally {
	t.holds = func(a among) hogql.Expr {
		values := map[string]any{
			"origin": window.from.UnixMicro() - 1, "most": most * 1_000_000, "role": role(first, second),
		}
		values["items"] = insight.Call("arraySort", a.aggregate("groupArray", insight.TemplateExpr(item, values), nil))
		return insight.TemplateExpr(passed, values)
	}
	if second.names == nil {
		t.names = nil
	} else if t.names != nil {
		t.names = append(t.names, second.names...)
	}
	if same(first, second) {
		return t.within(window, first.is)
	}
	return t.within(window, insight.Or(insight.OrTrue(first.is), insight.OrTrue(second.is)))
}

// same reports whether both events of a sequence have the same condition.
func same(first, second entity) bool {
	return hogql.PrintExpr(insight.OrTrue(first.is)) == hogql.PrintExpr(insight.OrTrue(second.is))
}

// role returns the role of an event in a sequence.
func role(first, second entity) hogql.Expr {
	if same(first, second) {
		return insight.Const(int64(2))
	}
	return insight.TemplateExpr("if({first}, if({second}, 2, 1), 3)", map[string]any{
		"first": insight.OrTrue(first.is), "second": insight.OrTrue(second.is),
	})
}
