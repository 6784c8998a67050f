package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// VariableType says what values an insight variable takes.
type VariableType string

// The types of insight variables (contract: api.md, section 4.6).
const (
	VariableString  VariableType = "String"
	VariableNumber  VariableType = "Number"
	VariableBoolean VariableType = "Boolean"
	VariableList    VariableType = "List"
	VariableDate    VariableType = "Date"
)

// Variable is the definition of {variables.x} in a project's queries (contract: api.md, section 4.6).
type Variable struct {
	ID        string       `json:"id"` // UUID
	Project   int64        `json:"-"`
	Name      string       `json:"name"`
	CodeName  string       `json:"code_name"` // x in {variables.x}; never changes
	Type      VariableType `json:"type"`
	Default   any          `json:"-"` // JSON value: nil, bool, int64, uint64, float64, string, []any or map[string]any; not to be changed
	Values    []any        `json:"-"`
	IsMulti   bool         `json:"is_multi"`
	CreatedAt time.Time    `json:"created_at"`
	CreatedBy string       `json:"created_by"`
}

// storedVariable is the JSON of a variable.
type storedVariable struct {
	*Variable
	Default json.RawMessage `json:"default"`
	Values  json.RawMessage `json:"values"`
}

func (v *Variable) stored() any { return storedVariable{v, encode(v.Default), encode(v.Values)} }

func readVariable(rec *Record) (entity, error) {
	v := &Variable{ID: rec.ID, Project: rec.Project}
	s := storedVariable{Variable: v}
	if err := decode(rec, &s); err != nil || rec.Data == nil {
		return v, err
	}
	var err error
	if v.Default, err = DecodeJSON(s.Default); err != nil {
		return nil, fmt.Errorf("its default: %w", err)
	}
	values, err := DecodeJSON(s.Values)
	if err != nil {
		return nil, fmt.Errorf("its values: %w", err)
	}
	v.Values, _ = values.([]any)
	return v, nil
}

func (v *Variable) name() recordName { return recordName{v.Project, KindVariable, v.ID} }

func (v *Variable) unique() []string {
	return []string{"id " + v.ID, within(v.Project, v.CodeName)}
}

func (v *Variable) size() int { return len(v.Name) + len(encode(v.Default)) + len(encode(v.Values)) }

func (v *Variable) checkSize() error {
	return checkSize("default_value", "This variable", v.size(), MaxSmallRecord)
}

func (v *Variable) put(_ *draft, p *projectState) (Stored, error) {
	was := p.variables.put(v)
	p.variablesChanged()
	return was, nil
}

func (v *Variable) remove(_ *draft, p *projectState) Stored {
	was := p.variables.remove(v.ID)
	p.variablesChanged()
	return was
}

func (v *Variable) key() string  { return v.ID }
func (v *Variable) code() string { return v.CodeName }
func (v *Variable) listed() bool { return true }

// compare puts old variables first.
func (v *Variable) compare(other *Variable) int {
	return cmp.Or(v.CreatedAt.Compare(other.CreatedAt), cmp.Compare(v.ID, other.ID))
}

// variablesChanged invalidates what is derived from the variables, which is made again on its next use.
func (p *projectState) variablesChanged() {
	p.querySerial = serials.Add(1)
	list := p.variables.list
	p.defaults = sync.OnceValue(func() map[string]any {
		defaults := make(map[string]any, list.Len())
		for _, v := range valuesOf(list, nil) {
			defaults[v.CodeName] = v.Default
		}
		return defaults
	})
}

const (
	maxVariableName = 400
	variableTaken   = "Variable with this code name already exists"
)

// NewVariable describes a new variable.
type NewVariable struct {
	ID        string // UUID; empty: a new one
	Project   int64
	Name      string          // required, at most 400 characters
	Type      VariableType    // required
	Default   json.RawMessage // empty for null
	Values    json.RawMessage // a JSON array of plain values, only of a List; empty for none
	IsMulti   bool
	CreatedBy string
	Check     VariableCheck // asked before it is added; may be nil
}

// VariableCheck examines the changed variable, and may bring its default into the form of its type. Its error refuses the write, and is returned as
// it is. It may run inside the write transaction, more than once, so it must not call the registry.
type VariableCheck func(v *Variable) error

// CreateVariable adds an insight variable. Mistakes are *FieldError; an unknown project is ErrNotFound.
func (r *Registry) CreateVariable(ctx context.Context, n NewVariable, now time.Time) (*Variable, error) {
	v, err := n.variable(moment(now))
	if err != nil {
		return nil, err
	}
	err = r.write(ctx, n.Project, func(t *tx) error { return t.addVariable(v) })
	if err != nil {
		return nil, fmt.Errorf("creating variable %q: %w", n.Name, err)
	}
	return &v, nil
}

// variable returns the variable that a NewVariable describes. Mistakes are *FieldError.
func (n NewVariable) variable(at time.Time) (Variable, error) {
	n.Name = strings.TrimSpace(n.Name)
	v := Variable{
		ID: cmp.Or(n.ID, newID()), Project: n.Project, Name: n.Name, CodeName: CodeName(n.Name), Type: n.Type,
		IsMulti: n.IsMulti, CreatedAt: at, CreatedBy: n.CreatedBy,
	}
	if err := v.setJSON(n.Default, n.Values); err != nil {
		return v, err
	}
	if err := v.checkSize(); err != nil { // before the check, which compares the default with the values
		return v, err
	}
	return v, v.finish(n.Check)
}

// addVariable adds a variable whose code name is free.
func (t *tx) addVariable(v Variable) error {
	p, err := t.state()
	if err != nil {
		return err
	}
	if p.variables.coded(v.CodeName) != nil {
		return &FieldError{Field: "code_name", Code: CodeUnique, Message: variableTaken}
	}
	return t.put(&v)
}

// updateVariable changes a variable.
func (t *tx) updateVariable(id string, u VariableUpdate) (v Variable, err error) {
	before := t.next.VariableByID(t.project, id)
	if before == nil {
		return v, ErrNotFound
	}
	v = *before
	if err := u.apply(&v); err != nil {
		return v, err
	}
	changed := v
	return v, t.put(&changed)
}

// VariableUpdate is a change of a variable; nil fields stay.
type VariableUpdate struct {
	Name    *string // the code name stays: queries use it
	Type    *VariableType
	Default json.RawMessage // null removes the default
	Values  json.RawMessage
	IsMulti *bool
	Check   VariableCheck // asked before it is changed; may be nil
}

// UpdateVariable changes an insight variable. Mistakes are *FieldError; an unknown one is ErrNotFound.
func (r *Registry) UpdateVariable(ctx context.Context, project int64, id string, u VariableUpdate) (*Variable, error) {
	if err := u.checkSize(); err != nil {
		return nil, fmt.Errorf("updating variable %q: %w", id, err)
	}
	var v Variable
	err := r.write(ctx, project, func(t *tx) (err error) {
		v, err = t.updateVariable(id, u)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("updating variable %q: %w", id, err)
	}
	return &v, nil
}

// checkSize refuses values that no variable can hold. It is for outside of the write transaction, so that nothing large is decoded or compared inside.
func (u VariableUpdate) checkSize() error {
	var given Variable
	if err := given.setJSON(u.Default, u.Values); err != nil {
		return err
	}
	return given.checkSize()
}

// apply changes v. Mistakes are *FieldError.
func (u VariableUpdate) apply(v *Variable) error {
	if u.Name != nil {
		v.Name = strings.TrimSpace(*u.Name)
	}
	set(&v.Type, u.Type)
	set(&v.IsMulti, u.IsMulti)
	if err := v.setJSON(u.Default, u.Values); err != nil {
		return err
	}
	return v.finish(u.Check)
}

// DeleteVariable removes an insight variable. An unknown one is ErrNotFound.
func (r *Registry) DeleteVariable(ctx context.Context, project int64, id string) error {
	err := r.write(ctx, project, func(t *tx) error {
		v := t.next.VariableByID(project, id)
		if v == nil {
			return ErrNotFound
		}
		t.remove(v)
		return nil
	})
	if err != nil {
		return fmt.Errorf("deleting variable %q: %w", id, err)
	}
	return nil
}

// setJSON sets the JSON fields that are given.
func (v *Variable) setJSON(def, values json.RawMessage) error {
	if len(def) > 0 {
		d, err := DecodeJSON(def)
		if err != nil {
			return invalid("default_value", "Value must be valid JSON.")
		}
		v.Default = d
	}
	if len(values) == 0 {
		return nil
	}
	d, err := DecodeJSON(values)
	if err != nil {
		return invalid("values", "Value must be valid JSON.")
	}
	switch d := d.(type) {
	case nil:
		v.Values = nil
	case []any:
		for _, item := range d {
			switch item.(type) {
			case nil, string, bool, int64, uint64, float64:
			default: // no run can give it
				return invalid("values", "Values must be strings, numbers, booleans or null.")
			}
		}
		v.Values = d
	default:
		return invalid("values", "Expected a list of items.")
	}
	return nil
}

// finish validates a variable that was changed, and asks check.
func (v *Variable) finish(check VariableCheck) error {
	if err := v.validate(); err != nil {
		return err
	}
	v.IsMulti = v.IsMulti && v.Type == VariableList // only a list can have several values
	if v.Type == VariableList && v.Default == "" {  // what PostHog stores for a list without a default
		v.Default = nil
	}
	if check != nil {
		return check(v)
	}
	return nil
}

func (v *Variable) validate() error {
	switch {
	case v.Name == "":
		return required("name")
	case utf8.RuneCountInString(v.Name) > maxVariableName:
		return tooLong("name", maxVariableName)
	case v.CodeName == "":
		return invalid("name", "The name must have a letter or a digit.")
	case v.Type == "":
		return required("type")
	}
	switch v.Type {
	case VariableString, VariableNumber, VariableBoolean, VariableList, VariableDate:
	default:
		return notChoice("type", string(v.Type))
	}
	return nil
}

// CodeName derives the name that queries use from a variable's name: letters, digits, _ for spaces, lower case (contract: api.md, section 4.6).
func CodeName(name string) string {
	return strings.ToLower(strings.Map(func(c rune) rune {
		switch {
		case c == ' ':
			return '_'
		case c == '_' || unicode.IsLetter(c) || unicode.IsNumber(c):
			return c
		}
		return -1
	}, name))
}

// DecodeJSON reads one JSON value; whole numbers that fit are int64, larger ones uint64, others float64, so that a value
// reads the same after it was written as JSON again.
func DecodeJSON(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return plainNumbers(v)
}

func plainNumbers(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		if n, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return n, nil
		}
		f, err := v.Float64()
		switch {
		case err != nil || math.Trunc(f) != f:
		case f >= -1<<63 && f < 1<<63:
			return int64(f), nil
		case f > 0 && f < 1<<64:
			return uint64(f), nil
		}
		return f, err
	case []any:
		for i := range v {
			if v[i], err = plainNumbers(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = plainNumbers(v[k]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
