package insight

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// What stands for values that are none (contract: api.md, section 1.5).
const (
	NullValue  = "$$_posthog_breakdown_null_$$"
	OtherValue = "$$_posthog_breakdown_other_$$"
)

// Everybody is the value of a breakdown by the cohort of all people: its id. EverybodyName is what the answers call it.
const (
	Everybody     = "0"
	EverybodyName = "all users"
)

// IsEverybody tells whether a text names the cohort of all people, in a query or as a value of an answer.
func IsEverybody(text string) bool {
	return text == "all" || text == Everybody || text == EverybodyName
}

// Cohort checks that a breakdown by cohort names that of all people, the only one there is. The error is a *diag.Error.
func Cohort(b *query.Breakdown) error {
	if b.Property == "all" || b.Property == Everybody {
		return nil
	}
	return diag.Field(diag.InvalidInput, b.At, "Breakdowns by cohort are not supported, but for 'all'")
}

// maxValue is how many characters of a value are told apart.
const maxValue = 400

// Breakdown gives the value that an event has in a breakdown, as text: ” for one that is missing. A histogram's value is a
// number, NULL when it is missing. The error is a *diag.Error.
func (w *World) Breakdown(b *query.Breakdown) (hogql.Expr, error) {
	value, err := w.WholeBreakdown(b)
	if err != nil || b.Bins > 0 {
		return value, err
	}
	return CutBreakdown(value), nil
}

// WholeBreakdown is Breakdown before its text is cut: cheaper, for who cuts it once it is grouped by.
func (w *World) WholeBreakdown(b *query.Breakdown) (hogql.Expr, error) {
	if b.Type == "cohort" {
		return Const(Everybody), Cohort(b)
	}
	value, err := w.breakdownField(b)
	if err != nil {
		return nil, err
	}
	if b.Bins > 0 {
		return Call("toFloat", value), nil
	}
	return w.wholeText(value, b), nil
}

// BreakdownText is a value of a breakdown as text, empty for one that is missing. A URL that is normalized loses the slashes,
// question marks and number signs at its end; a path is cleaned before that.
func (w *World) BreakdownText(value hogql.Expr, b *query.Breakdown) hogql.Expr {
	return CutBreakdown(w.wholeText(value, b))
}

// CutBreakdown shortens the text of a value to what is told apart.
func CutBreakdown(text hogql.Expr) hogql.Expr { return Call("left", text, Const(int64(maxValue))) }

func (w *World) wholeText(value hogql.Expr, b *query.Breakdown) hogql.Expr {
	text := Call("_plainText", value)
	if clean := Cleaner(w.PathCleaning); clean != nil && b.CleanPath {
		text = clean(text)
	}
	if b.NormalizeURL {
		text = TemplateExpr("if({text} is null or {text} = '', '', if(empty({cut}), '/', {cut}))", map[string]any{
			"text": text, "cut": Call("replaceRegexpOne", text, Const(`[/?#]+$`), Const("")),
		})
	}
	return Call("ifNull", text, Const(""))
}

func (w *World) breakdownField(b *query.Breakdown) (hogql.Expr, error) {
	if b.Type == "hogql" {
		e, err := bind.UserValue(b.Property)
		if err != nil {
			return nil, diag.Field(err.Code, b.At, "The HogQL expression of a breakdown %s", err.Detail)
		}
		return e, w.Known(e, b.At)
	}
	value, _, err := bind.PropertyField(b.Type, b.Property, b.Group, w.subject(b.At))
	return value, err
}
