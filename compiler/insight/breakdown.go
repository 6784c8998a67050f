package insight

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// The values that stand for missing ones and for the rest (contract: api.md, section 1.5).
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

// PlainColumn is the name of the columns of HogQL in which endpoints show plain values.
const PlainColumn = "breakdown_value"

// PlainRow returns a function that makes the values of the columns PlainColumn plain in a row of HogQL, a JSON array; nil if there is no such
// column. Unlike in insights, a value may be empty.
func PlainRow(columns []string) func(row []byte) ([]byte, error) {
	if !slices.Contains(columns, PlainColumn) {
		return nil
	}
	return func(row []byte) ([]byte, error) {
		if !bytes.Contains(row, []byte(NullValue)) && !bytes.Contains(row, []byte(OtherValue)) {
			return row, nil
		}
		var cells []json.RawMessage
		if err := json.Unmarshal(row, &cells); err != nil {
			return nil, fmt.Errorf("reading a row with breakdown values: %w", err)
		}
		for i := range min(len(cells), len(columns)) {
			if columns[i] == PlainColumn {
				cells[i] = plainCell(cells[i])
			}
		}
		out, err := json.Marshal(cells)
		if err != nil {
			return nil, fmt.Errorf("writing a row with breakdown values: %w", err)
		}
		return out, nil
	}
}

// plainCell makes a text, and the texts in a list, plain.
func plainCell(cell json.RawMessage) json.RawMessage {
	var (
		text string
		list []json.RawMessage
	)
	switch {
	case json.Unmarshal(cell, &text) == nil && text == NullValue:
		return json.RawMessage("null")
	case text == OtherValue:
		return json.RawMessage(`"Other"`)
	case json.Unmarshal(cell, &list) == nil && list != nil:
		for i := range list {
			list[i] = plainCell(list[i])
		}
		if out, err := json.Marshal(list); err == nil {
			return out
		}
	}
	return cell
}

// PlainLabel returns the label of a result in the form that endpoints show.
func PlainLabel(label string) string {
	return strings.ReplaceAll(strings.ReplaceAll(label, NullValue, "null"), OtherValue, "Other")
}

// Everybody is the breakdown value of the cohort of all people: its id. EverybodyName is its name in answers.
const (
	Everybody     = "0"
	EverybodyName = "all users"
)

// IsEverybody reports whether a text in a query, or a value of an answer, names the cohort of all people.
func IsEverybody(text string) bool {
	return text == "all" || text == Everybody || text == EverybodyName
}

// Cohorts returns the condition that an event has a value in the breakdowns by a single cohort: its person is in that cohort. It returns
// nil if no condition is needed. The error is a *diag.Error.
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

// cohort returns the value of a breakdown by cohorts: the id as text. With several cohorts, an event becomes a row for each cohort that its
// person is in, so this value may only be used to group rows by.
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

// Joined reports whether an event may have no value, or several values, in a breakdown: the ids of cohorts.
func Joined(b *query.Breakdown) bool { return len(b.Cohorts) > 1 }

// CohortName returns the name of a breakdown's cohort, given its id as text.
func (w *World) CohortName(value string) string {
	id, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil:
		return value // not an id: the value that stands for the rest
	case id == schema.Everybody:
		return EverybodyName
	}
	return w.Database.Cohorts.Name(id)
}

// CohortValue finds the cohort of a breakdown by a value of an answer, and returns its id as text. The error is a *diag.Error about the
// field attr, which has the value.
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

// maxValue is the number of characters of a value that count; the rest is cut off.
const maxValue = 400

// Breakdown returns the value of an event in a breakdown, as text, empty if it is missing. The value of a histogram is a number, NULL if it
// is missing. The error is a *diag.Error.
func (w *World) Breakdown(b *query.Breakdown) (hogql.Expr, error) {
	value, err := w.WholeBreakdown(b)
	if err != nil || b.Bins > 0 || len(b.Cohorts) > 0 {
		return value, err
	}
	return CutBreakdown(value), nil
}

// WholeBreakdown is like Breakdown, but does not cut the text. That is cheaper for callers that cut it after grouping by it.
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

// BreakdownText returns a value of a breakdown as text, empty if it is missing. A normalized URL loses the slashes, question marks and
// number signs at its end; a path is cleaned before that.
func (w *World) BreakdownText(value hogql.Expr, b *query.Breakdown) hogql.Expr {
	return CutBreakdown(w.wholeText(value, b))
}

// CutBreakdown cuts the text of a value to maxValue characters.
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

// noGroupCode is PostHog's code for a breakdown by the property of a group whose type is missing.
const noGroupCode diag.Code = "breakdown_group_type_index_missing"

func (w *World) breakdownField(b *query.Breakdown) (hogql.Expr, error) {
	if b.Type == "hogql" {
		e, err := filter.UserValue(b.Property, w.Spend)
		if err != nil {
			return nil, diag.Field(err.Code, b.At, "The HogQL expression of a breakdown %s", err.Detail)
		}
		return e, w.Known(e, b.At)
	}
	if b.Type == "group" && b.Group == query.NoGroup {
		return nil, diag.Field(noGroupCode, b.At, "This breakdown needs a group type. Select a group type for it, or break down by something else.")
	}
	value, _, err := filter.Field(b.Type, b.Property, b.Group, w.subject(b.At))
	return value, err
}
