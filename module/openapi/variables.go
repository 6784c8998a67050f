package openapi

import (
	"encoding/json"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// Variable is a variable that a run may give a value for.
type Variable struct {
	Name string
	// Type is String, Number, Boolean, List or Date; Property for a property's value, Range for an end of an insight's range.
	Type        string
	Description string
	// HasDefault reports whether a run may omit the variable; Default is the value used then, nil for null.
	HasDefault bool
	Default    any
	// Values are the allowed values of a List; empty for any.
	Values []any
	// Several reports whether a List accepts more than one value.
	Several bool
}

// variablesSchema returns the schema of an endpoint's variables. No other names are allowed.
func variablesSchema(variables []Variable) *openapi3.Schema {
	s := openapi3.NewObjectSchema().WithoutAdditionalProperties()
	for i := range variables {
		v := &variables[i]
		s.WithProperty(v.Name, v.schema())
		if !v.HasDefault {
			s.Required = append(s.Required, v.Name)
		}
	}
	return s
}

// schema returns the schema of the variable's values. Null is allowed for any variable: it is SQL's NULL.
func (v *Variable) schema() *openapi3.Schema {
	s := v.values()
	s.Nullable = true
	s.Description = v.Description
	if standard, ok := v.standard(); ok {
		s.Default, s.Example = standard, standard
	}
	return s
}

func (v *Variable) values() *openapi3.Schema {
	switch v.Type {
	case "Number":
		return number()
	case "Boolean":
		return boolean()
	case "Date":
		return text().WithFormat("date")
	case "List":
		s := listOf(inline(v.items()))
		s.MinItems = 1
		if !v.Several {
			most := uint64(1)
			s.MaxItems = &most
		}
		return s
	}
	return text()
}

// items returns the schema of one value of a List.
func (v *Variable) items() *openapi3.Schema {
	if len(v.Values) == 0 {
		return text()
	}
	strings, numbers := true, true
	for _, value := range v.Values {
		_, isString := value.(string)
		strings = strings && isString
		switch value.(type) {
		case int64, uint64, float64, json.Number:
		default:
			numbers = false
		}
	}
	s := anything()
	switch {
	case strings:
		s = text()
	case numbers:
		s = number()
	}
	return s.WithEnum(v.Values...)
}

// standard returns the default, if it matches the schema.
func (v *Variable) standard() (any, bool) {
	if !v.HasDefault || v.Default == nil {
		return nil, false
	}
	switch v.Type {
	case "Number":
		switch v.Default.(type) {
		case int64, uint64, float64, json.Number:
			return v.Default, true
		}
		return nil, false
	case "Boolean":
		_, ok := v.Default.(bool)
		return v.Default, ok
	case "List":
		if list, ok := v.Default.([]any); ok {
			return list, len(list) > 0 && (v.Several || len(list) == 1)
		}
		return []any{v.Default}, true
	case "Date":
		day, ok := v.Default.(string)
		if ok {
			_, err := time.Parse(time.DateOnly, day)
			ok = err == nil
		}
		return day, ok
	}
	words, ok := v.Default.(string)
	return words, ok
}
