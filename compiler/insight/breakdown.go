package insight

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// What stands for missing values (contract: api.md, section 1.5).
const (
	NullValue  = "$$_posthog_breakdown_null_$$"
	OtherValue = "$$_posthog_breakdown_other_$$"
)

// PlainValue returns the value of a breakdown in the form that endpoints show (PostHog API, section 5.4): null for a missing or empty
// value, "Other" for the rest.
func PlainValue(value any) any {
	switch v := value.(type) {
	case string:
		switch v {
		case NullValue, "":
			return json.RawMessage("null")
		case OtherValue:
			return "Other"
		}
	case []string:
		return plainList(v)
	case []any:
		return plainList(v)
	}
	return value
}

func plainList[T any](values []T) []any {
	out := make([]any, len(values))
	for i := range values {
		out[i] = PlainValue(values[i])
	}
	return out
}

// PlainLabel returns the label of a result in the form that endpoints show.
func PlainLabel(label string) string {
	return strings.ReplaceAll(strings.ReplaceAll(label, NullValue, "null"), OtherValue, "Other")
}

// Everybody is the value of a breakdown by the cohort of all people: its id. EverybodyName is what the answers call it.
const (
	Everybody     = "0"
	EverybodyName = "all users"
)

// IsEverybody reports whether a text names the cohort of all people, in a query or as a value of an answer.
func IsEverybody(text string) bool {
	return text == "all" || text == Everybody || text == EverybodyName
}

// Cohorts is the condition that an event has a value in the breakdowns that are by one cohort: that its person is in it. It is
// nil when it always has. The error is a *diag.Error.
func (w *World) Cohorts(split *query.Breakdowns) (hogql.Expr, error) {
	var conditions []hogql.Expr
	for _, field := range split.Fields {
		for _, c := range field.Cohorts {
			if c.ID == schema.Everybody {
				continue
			}
			if missing := w.Database.Cohorts.Missing(c.ID); missing != "" {
				return nil, diag.Field(diag.InvalidInput, c.At, "%s", missing)
			}
		}
		if len(field.Cohorts) == 1 && field.Cohorts[0].ID != schema.Everybody {
			conditions = append(conditions, inCohort(field.Cohorts[0].ID))
		}
	}
	return And(conditions...), nil
}

func inCohort(id int64) hogql.Expr { return Compare(Field("person_id"), hogql.InCohort, Const(id)) }

// cohort is the value of a breakdown by cohort: the id as text. Of several cohorts an event has as many values as there are of
// them that its person is in: it becomes a row for each, so that the value is one that rows are grouped by, and no other.
func cohort(b *query.Breakdown) hogql.Expr {
	text := func(id int64) hogql.Expr { return Const(strconv.FormatInt(id, 10)) }
	if len(b.Cohorts) == 1 {
		return text(b.Cohorts[0].ID)
	}
	each := &hogql.Array{}
	for _, c := range b.Cohorts {
		value := text(c.ID)
		if c.ID != schema.Everybody {
			value = Call("if", inCohort(c.ID), value, Const(""))
		}
		each.Items = append(each.Items, value)
	}
	return TemplateExpr("arrayJoin(arrayFilter(id -> id != '', {each}))", map[string]any{"each": each})
}

// Joined reports whether an event may have several values in a breakdown, or none: the ids of cohorts.
func Joined(b *query.Breakdown) bool { return len(b.Cohorts) > 1 }

// CohortName is what a cohort of a breakdown is called, by its id as text.
func (w *World) CohortName(value string) string {
	id, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil:
		return value // what stands for other values
	case id == schema.Everybody:
		return EverybodyName
	}
	return w.Database.Cohorts.Name(id)
}

// CohortValue finds the cohort of a breakdown that a value of an answer stands for, and gives its id as text. The error is a
// *diag.Error about the field that has the value.
func CohortValue(b *query.Breakdown, value, attr string) (string, error) {
	if IsEverybody(value) {
		value = Everybody
	}
	for _, c := range b.Cohorts {
		if strconv.FormatInt(c.ID, 10) == value {
			return value, nil
		}
	}
	return "", diag.Field(diag.InvalidInput, attr, "There is no cohort '%s'", value)
}

// maxValue is how many characters of a value are told apart.
const maxValue = 400

// Breakdown gives the value that an event has in a breakdown, as text: ” for one that is missing. A histogram's value is a
// number, NULL when it is missing. The error is a *diag.Error.
func (w *World) Breakdown(b *query.Breakdown) (hogql.Expr, error) {
	value, err := w.WholeBreakdown(b)
	if err != nil || b.Bins > 0 || len(b.Cohorts) > 0 {
		return value, err
	}
	return CutBreakdown(value), nil
}

// WholeBreakdown is Breakdown before its text is cut: cheaper, for who cuts it once it is grouped by.
func (w *World) WholeBreakdown(b *query.Breakdown) (hogql.Expr, error) {
	if len(b.Cohorts) > 0 {
		return cohort(b), nil
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
		e, err := filter.UserValue(b.Property, w.Spend)
		if err != nil {
			return nil, diag.Field(err.Code, b.At, "The HogQL expression of a breakdown %s", err.Detail)
		}
		return e, w.Known(e, b.At)
	}
	value, _, err := filter.Field(b.Type, b.Property, b.Group, w.subject(b.At))
	return value, err
}
