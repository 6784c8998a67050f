// Package changes reports what callers of an endpoint notice when one version replaces another.
package changes

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/columntype"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Changes are the changes between two versions. Breaking are those that may break a caller of the old version.
type Changes struct {
	From       int      `json:"from"` // number of the version that was current
	To         int      `json:"to"`
	Breaking   []Change `json:"breaking"`
	Compatible []Change `json:"compatible"`
}

// Change is one change of the answer's columns or of the variables.
type Change struct {
	Code   Code   `json:"code"`
	Name   string `json:"name"`             // of the column or variable; or the new kind
	Before string `json:"before,omitempty"` // the old name, type, place or kind
	After  string `json:"after,omitempty"`  // the new one
	Detail string `json:"detail"`           // for people
}

// Code names a family of changes for programs; part of the API: add, never rename.
type Code string

// The codes of changes. All of them break callers, except added columns and variables, and changed actions and cohorts.
const (
	KindChanged      Code = "kind_changed"
	ColumnRemoved    Code = "column_removed"
	ColumnRenamed    Code = "column_renamed"
	ColumnRetyped    Code = "column_retyped"
	ColumnMoved      Code = "column_moved"
	ColumnAdded      Code = "column_added"
	VariableRemoved  Code = "variable_removed"
	VariableRetyped  Code = "variable_retyped"
	VariableRequired Code = "variable_required"
	VariableAdded    Code = "variable_added"
	ActionDeleted    Code = "action_deleted"
	ActionChanged    Code = "action_changed"
	CohortDeleted    Code = "cohort_deleted"
	CohortChanged    Code = "cohort_changed"
)

// Side is a version, with the variables as they are defined while it is current. Variables returns nil for a name without a definition.
type Side struct {
	Version   *registry.Version
	Variables func(codeName string) *registry.Variable
	// Uses are the actions and cohorts that the version depends on.
	Uses []Use
}

// Use is an action or a cohort that a version depends on.
type Use struct {
	Cohort    bool // it is a cohort, not an action
	ID        int64
	Title     string // what people call it
	Deleted   bool
	ChangedAt time.Time // when its meaning last changed, including its deletion
}

// what returns the beginning of a detail about the action or cohort.
func (u *Use) what() string {
	if u.Cohort {
		return fmt.Sprintf("cohort %q (ID %d)", u.Title, u.ID)
	}
	return fmt.Sprintf("action %q (ID %d)", u.Title, u.ID)
}

// Since reports what happened to the actions and cohorts that a version depends on since it was published, or created if it never was.
func Since(s Side) *Changes {
	v := s.Version
	c := &Changes{From: v.Number, To: v.Number, Breaking: []Change{}, Compatible: []Change{}}
	published := v.PublishedAt
	if published.IsZero() {
		published = v.CreatedAt
	}
	c.deleted(nil, s.Uses)
	for i := range s.Uses {
		u := &s.Uses[i]
		if u.Deleted || !u.ChangedAt.After(published) {
			continue
		}
		code := ActionChanged
		if u.Cohort {
			code = CohortChanged
		}
		detail := fmt.Sprintf("%s was changed after version %d was published", u.what(), v.Number)
		c.Compatible = append(c.Compatible, Change{Code: code, Name: u.Title, Detail: detail})
	}
	return c
}

// deleted records the deleted actions and cohorts that the new version depends on and the old one does not.
func (c *Changes) deleted(before, after []Use) {
	for i := range after {
		u := &after[i]
		known := slices.ContainsFunc(before, func(b Use) bool { return b.Cohort == u.Cohort && b.ID == u.ID })
		if !u.Deleted || known {
			continue
		}
		code := ActionDeleted
		if u.Cohort {
			code = CohortDeleted
		}
		c.breaks(code, u.Title, "", "", "%s was deleted", u.what())
	}
}

// Between compares a version with the one that replaces it.
func Between(from, to Side) *Changes {
	c := &Changes{From: from.Version.Number, To: to.Version.Number, Breaking: []Change{}, Compatible: []Change{}}
	before, after := from.read(), to.read()
	if before.kind != after.kind {
		c.breaks(KindChanged, after.kind, before.kind, after.kind, "the answer becomes that of a %s, before it was that of a %s", after.kind, before.kind)
	} else {
		c.columns(from.Version.Columns, to.Version.Columns)
	}
	c.variables(before.variables, after.variables)
	c.deleted(from.Uses, to.Uses)
	return c
}

// Any reports whether there are any changes.
func (c *Changes) Any() bool { return len(c.Breaking)+len(c.Compatible) > 0 }

func (c *Changes) breaks(code Code, name, before, after, format string, args ...any) {
	c.Breaking = append(c.Breaking, Change{code, name, before, after, fmt.Sprintf(format, args...)})
}

// wireType returns the type of a column on the wire. The one that is stored with a version may be that of an older release.
func wireType(c *registry.Column) string {
	if c.ClickHouse == "" {
		return c.Type
	}
	return columntype.Wire(c.ClickHouse)
}

// types returns the types of a column in two versions, as callers see them.
func types(before, after *registry.Column) (was, is string) {
	if before.ClickHouse == "" || after.ClickHouse == "" {
		return wireType(before), wireType(after)
	}
	return columntype.InRows(before.ClickHouse), columntype.InRows(after.ClickHouse)
}

// columns compares by name, and also by place because rows are arrays. It needs the columns of both versions.
func (c *Changes) columns(before, after []registry.Column) {
	if before == nil || after == nil {
		return
	}
	place := func(columns []registry.Column, name string) int {
		return slices.IndexFunc(columns, func(c registry.Column) bool { return c.Name == name })
	}
	taken := make(map[int]bool) // the places of renamed columns
	for i, old := range before {
		switch j := place(after, old.Name); {
		case j < 0 && i < len(after) && place(before, after[i].Name) < 0:
			taken[i] = true
			c.breaks(ColumnRenamed, old.Name, old.Name, after[i].Name, "column %s is renamed to %s", old.Name, after[i].Name)
		case j < 0:
			c.breaks(ColumnRemoved, old.Name, old.Type, "", "column %s is removed", old.Name)
		default:
			if j != i && place(before, old.Name) == i { // of several columns with one name, only the first is compared
				c.breaks(ColumnMoved, old.Name, strconv.Itoa(i+1), strconv.Itoa(j+1), "column %s moves from place %d to %d", old.Name, i+1, j+1)
			}
			if was, typ := types(&old, &after[j]); typ != was && typ != columntype.Unknown && was != columntype.Unknown {
				c.breaks(ColumnRetyped, old.Name, was, typ, "column %s is %s, before it was %s", old.Name, typ, was)
			}
		}
	}
	for i, added := range after {
		if !taken[i] && place(before, added.Name) < 0 {
			c.Compatible = append(c.Compatible, Change{ColumnAdded, added.Name, "", added.Type, fmt.Sprintf("column %s is added", added.Name)})
		}
	}
}

// variables compares the variables. A run that gives a removed variable is refused, and a run that lacks a variable without a default no longer gives
// everything that the query asks for.
func (c *Changes) variables(before, after map[string]variable) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[name]; !ok {
			c.breaks(VariableRemoved, name, before[name].typ, "", "variable %s is removed", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		now := after[name]
		was, known := before[name]
		switch {
		case known && now.typ != was.typ:
			c.breaks(VariableRetyped, name, was.typ, now.typ, "variable %s is a %s, before it was a %s", name, now.typ, was.typ)
		case now.required && !was.required:
			c.breaks(VariableRequired, name, "", now.typ, "variable %s is needed, for it has no default", name)
		case !known:
			c.Compatible = append(c.Compatible, Change{VariableAdded, name, "", now.typ, fmt.Sprintf("variable %s is added", name)})
		}
	}
}

// taken is what runs of a version accept: the kind, and the variables by name (contract: api.md, section 5.5).
type taken struct {
	kind      string
	variables map[string]variable
}

type variable struct {
	typ      string // String, Number …; empty for the variables of insights
	required bool   // neither the query nor the definition has a value for runs without it
}

func (s Side) read() taken {
	found := taken{variables: make(map[string]variable)}
	node, err := compiler.Parse(s.Version.Query)
	if err != nil {
		return found // written by an older program; runs report what is wrong with it
	}
	found.kind = node.Kind()
	if n, ok := node.(query.Insight); ok {
		for _, name := range query.VariableNames(n) {
			found.variables[name] = variable{}
		}
	}
	if n, ok := node.(*query.HogQL); ok {
		for _, v := range n.Variables {
			if def := s.Variables(v.CodeName); def != nil { // otherwise it was deleted: runs report that
				found.variables[v.CodeName] = variable{typ: string(def.Type), required: !v.HasValue && !v.IsNull && def.Default == nil}
			}
		}
	}
	return found
}
