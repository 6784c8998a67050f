package module

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// bindVariables puts the variables of a run into a stored query: contract section 5.5. The second result tells runs with
// different values apart.
func (rq *request) bindVariables(node query.Node, given map[string]json.RawMessage) (query.Node, string, error) {
	if n, ok := node.(query.Insight); ok {
		return bindInsight(n, given)
	}
	stored, ok := node.(*query.HogQL)
	if !ok {
		if len(given) > 0 {
			return nil, "", unknownVariables(slices.Collect(maps.Keys(given)))
		}
		return node, "", nil
	}
	bound := *stored
	bound.Variables = maps.Clone(stored.Variables)
	left := maps.Clone(given)
	for id, v := range bound.Variables {
		raw, ok := left[v.CodeName]
		if !ok {
			continue
		}
		delete(left, v.CodeName)
		value, err := api.DecodeValue(raw)
		if err != nil {
			return nil, "", api.Invalid("variables", "invalid_input", "Variable %s: %s", v.CodeName, err)
		}
		if value == nil {
			v.Value, v.HasValue, v.IsNull = nil, false, true
		} else {
			def := rq.Snapshot.VariableByCode(rq.Project.ID, v.CodeName)
			if value, err = checkVariable(def, onlyItem(def, value)); err != nil {
				return nil, "", api.Invalid("variables", "invalid_input", "Variable %s: %s", v.CodeName, err)
			}
			v.Value, v.HasValue, v.IsNull = value, true, false
		}
		bound.Variables[id] = v
	}
	if len(left) > 0 {
		return nil, "", unknownVariables(slices.Collect(maps.Keys(left)))
	}
	return &bound, result.VariableMarks(&rq.Caller.Caller, &bound), nil
}

// onlyItem is the value of a List that takes one: the OpenAPI document calls every List an array (contract section 5.6), so a list
// of one value stands for that value.
func onlyItem(def *registry.Variable, value any) any {
	if items, ok := value.([]any); ok && len(items) == 1 && def != nil && def.Type == registry.VariableList && !def.IsMulti {
		return items[0]
	}
	return value
}

func unknownVariables(names []string) error {
	slices.Sort(names)
	return api.Invalid("variables", "invalid_input", "Unknown variable(s): %s", strings.Join(names, ", "))
}

// checkVariable checks a value against the type of its variable, and gives it in that type: a number may come as text.
// A variable that was deleted since checks nothing; the compiler names it.
func checkVariable(def *registry.Variable, value any) (any, error) {
	if def == nil {
		return value, nil
	}
	switch def.Type {
	case registry.VariableString:
		if _, ok := value.(string); ok {
			return value, nil
		}
		return nil, fmt.Errorf("%s is not a string", showValue(value))
	case registry.VariableNumber:
		switch v := value.(type) {
		case json.Number:
			if isNumber(string(v)) {
				return v, nil
			}
		case string:
			if isNumber(v) && json.Valid([]byte(v)) {
				return json.Number(v), nil
			}
		}
		return nil, fmt.Errorf("%s is not a number", showValue(value))
	case registry.VariableBoolean:
		switch value {
		case true, "true":
			return true, nil
		case false, "false":
			return false, nil
		}
		return nil, fmt.Errorf("%s is not a boolean", showValue(value))
	case registry.VariableDate:
		if text, ok := value.(string); ok && isDate(text) {
			return value, nil
		}
		return nil, fmt.Errorf("%s is not a valid date (want, for example, 2026-01-31 or 2026-01-31T10:00:00Z)", showValue(value))
	case registry.VariableList:
		return checkListVariable(def, value)
	}
	panic("BUG: a variable of type " + string(def.Type))
}

// isNumber tells the numbers that ClickHouse can hold: integers of 64 bits, and others that are not too large for a float.
func isNumber(text string) bool {
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

// checkListVariable takes one of the variable's values, or several of them when it is multi-valued.
func checkListVariable(def *registry.Variable, value any) (any, error) {
	items, several := value.([]any)
	if several && !def.IsMulti {
		return nil, fmt.Errorf("%s is a list; the variable takes one value", showValue(value))
	}
	if !several {
		items = []any{value}
	}
	for _, item := range items {
		if len(def.Values) > 0 && !slices.ContainsFunc(def.Values, func(v any) bool { return fmt.Sprint(v) == fmt.Sprint(item) }) {
			return nil, fmt.Errorf("%s is not one of its values", showValue(item))
		}
		switch item.(type) {
		case string, json.Number, bool:
		default:
			return nil, fmt.Errorf("%s is not a plain value", showValue(item))
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

// showValue gives a value as a message shows it: short.
func showValue(value any) string {
	const most = 60
	text := []rune(string(jsontext.Append(nil, value)))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}
