package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// VariablesField reads the field "variables" of a run: a value for each code name. It is nil if not given.
func VariablesField(fields map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	raw, ok := fields["variables"]
	if !ok || IsNull(raw) {
		return nil, nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, Invalid("variables", "invalid_input", "Input should be a valid dictionary")
	}
	return given, nil
}

// OnlyItem returns the value for a List variable that takes a single value: the OpenAPI document declares every List as an array (contract api.md, section
// 5.6), so a list of one value stands for that value.
func OnlyItem(def *registry.Variable, value any) any {
	if items, ok := value.([]any); ok && len(items) == 1 && def != nil && def.Type == registry.VariableList && !def.IsMulti {
		return items[0]
	}
	return value
}

// CheckVariable checks a value against the type of its variable, and returns it in that type: a number may come as text. It accepts any value for a nil
// def, a variable deleted since; the compiler reports that.
func CheckVariable(def *registry.Variable, value any) (any, error) {
	if def == nil {
		return value, nil
	}
	switch def.Type {
	case registry.VariableString:
		if _, ok := value.(string); ok {
			return value, nil
		}
		return nil, fmt.Errorf("%s is not a string", ShowValue(value))
	case registry.VariableNumber:
		switch v := value.(type) {
		case json.Number:
			if IsNumber(string(v)) {
				return v, nil
			}
		case string:
			if IsNumber(v) && json.Valid([]byte(v)) {
				return json.Number(v), nil
			}
		}
		return nil, fmt.Errorf("%s is not a number", ShowValue(value))
	case registry.VariableBoolean:
		switch value {
		case true, "true":
			return true, nil
		case false, "false":
			return false, nil
		}
		return nil, fmt.Errorf("%s is not a boolean", ShowValue(value))
	case registry.VariableDate:
		if text, ok := value.(string); ok && isDate(text) {
			return value, nil
		}
		return nil, fmt.Errorf("%s is not a valid date (want, for example, 2026-01-31 or 2026-01-31T10:00:00Z)", ShowValue(value))
	case registry.VariableList:
		return checkListVariable(def, value)
	}
	panic("BUG: a variable of type " + string(def.Type))
}

// IsNumber reports whether ClickHouse can hold a number: a 64-bit integer, or another number that is not too large for a float.
func IsNumber(text string) bool {
	if strings.ContainsAny(text, ".eE") {
		_, err := strconv.ParseFloat(text, 64)
		return err == nil
	}
	_, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		_, err = strconv.ParseUint(text, 10, 64)
	}
	return err == nil
}

// maxListItems is the most values that one variable can be given at a time.
const maxListItems = 100_000

// checkListVariable accepts one of the variable's values, or several if it is multi-valued. It takes time in proportion to the values and the items.
func checkListVariable(def *registry.Variable, value any) (any, error) {
	items, several := value.([]any)
	if several && !def.IsMulti {
		return nil, fmt.Errorf("%s is a list; the variable takes one value", ShowValue(value))
	}
	if !several {
		items = []any{value}
	}
	if len(items) > maxListItems {
		return nil, fmt.Errorf("a list of %d items is longer than the limit of %d", len(items), maxListItems)
	}
	var allowed map[string]bool
	if len(def.Values) > 0 {
		allowed = make(map[string]bool, len(def.Values))
		for _, v := range def.Values {
			allowed[fmt.Sprint(v)] = true
		}
	}
	for _, item := range items {
		if allowed != nil && !allowed[fmt.Sprint(item)] {
			return nil, fmt.Errorf("%s is not one of its values", ShowValue(item))
		}
		switch item.(type) {
		case string, json.Number, bool:
		default:
			return nil, fmt.Errorf("%s is not a plain value", ShowValue(item))
		}
	}
	return value, nil
}

var dateForms = []string{time.DateOnly, time.DateTime, "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339}

func isDate(text string) bool {
	return slices.ContainsFunc(dateForms, func(form string) bool {
		_, err := time.Parse(form, text)
		return err == nil
	})
}

// ShowValue returns a value in a short form for messages.
func ShowValue(value any) string {
	const most = 60
	text := []rune(string(jsontext.Append(nil, value)))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// UsedVariables returns the names of the variables that a query depends on: in a condition of an insight, or as a placeholder in SQL. Declaring a variable
// is not enough. It parses the SQL.
func UsedVariables(node query.Node) map[string]bool {
	used := make(map[string]bool)
	switch n := node.(type) {
	case query.Insight:
		for _, name := range query.VariableNames(n) {
			used[name] = true
		}
	case *query.HogQL:
		names, err := compiler.Variables(n.Text())
		if err != nil {
			return used
		}
		declared := make(map[string]bool, len(n.Variables))
		for _, v := range n.Variables {
			declared[v.CodeName] = true
		}
		for _, name := range names {
			used[name] = declared[name]
		}
	}
	return used
}

// StoredQuery reads the query of a version.
func StoredQuery(e *registry.Endpoint, v *registry.Version) (query.Node, error) {
	node, err := compiler.Parse(v.Query)
	if err != nil {
		return nil, fmt.Errorf("reading the stored query of endpoint %s version %d: %w", e.ID, v.Number, err)
	}
	return node, nil
}

// CanonicalID returns a UUID in the form in which ids are stored, and any other text unchanged.
func CanonicalID(text string) string {
	if id, err := uuid.Parse(text); err == nil {
		return id.String()
	}
	return text
}

// FitDefault checks the default value of a variable against its type, and converts it to the form of a run's value: a run without the variable uses the
// default as it is. It is a registry.VariableCheck.
func FitDefault(v *registry.Variable) error {
	if v.Default == nil {
		return nil
	}
	value, err := DecodeValue(jsontext.Append(nil, v.Default))
	if f, ok := v.Default.(float64); ok {
		value = json.Number(strconv.FormatFloat(f, 'e', -1, 64)) // in exponent form: as an integer, it could be too large
	}
	if err == nil {
		value, err = CheckVariable(v, OnlyItem(v, value))
	}
	if err == nil {
		v.Default, err = registry.DecodeJSON(jsontext.Append(nil, value))
	}
	if err != nil {
		return BadDefault(err)
	}
	return nil
}

// BadDefault refuses a default value that does not fit its variable.
func BadDefault(err error) error {
	return Invalid("default_value", "invalid_input", "The default value does not fit the variable: %s", err)
}
