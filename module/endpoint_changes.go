package module

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// versionChanges tells what callers of an endpoint notice when another version becomes the current one.
type versionChanges struct {
	From       int             `json:"from"` // number of the version that was the current one
	To         int             `json:"to"`
	Breaking   []versionChange `json:"breaking"`
	Compatible []versionChange `json:"compatible"`
}

// versionChange is one change of the answer's columns or of the variables.
type versionChange struct {
	Code   changeCode `json:"code"`
	Name   string     `json:"name"`             // of the column or variable; of the new kind
	Before string     `json:"before,omitempty"` // the name, type, place or kind before
	After  string     `json:"after,omitempty"`  // the same after it
	Detail string     `json:"detail"`           // for people
}

// changeCode names a family of changes for programs; part of the API: add, never rename.
type changeCode string

const (
	kindChanged      changeCode = "kind_changed"
	columnRemoved    changeCode = "column_removed"
	columnRenamed    changeCode = "column_renamed"
	columnRetyped    changeCode = "column_retyped"
	columnMoved      changeCode = "column_moved"
	columnAdded      changeCode = "column_added"
	variableRemoved  changeCode = "variable_removed"
	variableRetyped  changeCode = "variable_retyped"
	variableRequired changeCode = "variable_required"
	variableAdded    changeCode = "variable_added"
)

// comparison compares the versions that a write puts in each other's place, and refuses the write when it was asked to.
type comparison struct {
	snap           *registry.Snapshot // whose variables count
	before         *registry.Snapshot // the same for the version that gives way; nil: snap
	project        int64
	refuseBreaking bool
	attr           string          // the field of the request that a refusal names
	found          *versionChanges // nil when no version takes another's place
}

// check is a registry.VersionCheck.
func (c *comparison) check(from, to *registry.Version) error {
	c.compare(from, to)
	if !c.refuseBreaking || len(c.found.Breaking) == 0 {
		return nil
	}
	details := make([]string, len(c.found.Breaking))
	for i, change := range c.found.Breaking {
		details[i] = change.Detail
	}
	refused := validation(c.attr, "breaking_change", "Callers of version %d would break: %s.", from.Number, strings.Join(details, "; "))
	refused.Extra = c.found
	return refused
}

// compare notes what a change from one version to another means for callers.
func (c *comparison) compare(from, to *registry.Version) {
	c.found = &versionChanges{From: from.Number, To: to.Number, Breaking: []versionChange{}, Compatible: []versionChange{}}
	before, after := kindOf(from), kindOf(to)
	if before != after {
		c.found.breaks(kindChanged, after, before, after, "the answer becomes that of a %s, before it was that of a %s", after, before)
	} else {
		c.found.compareColumns(from.Columns, to.Columns)
	}
	c.found.compareVariables(variablesOf(cmp.Or(c.before, c.snap), c.project, from), variablesOf(c.snap, c.project, to))
}

func (v *versionChanges) breaks(code changeCode, name, before, after, format string, args ...any) {
	v.Breaking = append(v.Breaking, versionChange{code, name, before, after, fmt.Sprintf(format, args...)})
}

// compareColumns compares by name, and by place too: rows are arrays. Without the columns of both there is nothing to compare.
func (v *versionChanges) compareColumns(before, after []registry.Column) {
	if before == nil || after == nil {
		return
	}
	place := func(columns []registry.Column, name string) int {
		return slices.IndexFunc(columns, func(c registry.Column) bool { return c.Name == name })
	}
	taken := make(map[int]bool) // the places of columns that are there under a new name
	for i, old := range before {
		switch j := place(after, old.Name); {
		case j < 0 && i < len(after) && place(before, after[i].Name) < 0:
			taken[i] = true
			v.breaks(columnRenamed, old.Name, old.Name, after[i].Name, "column %s is renamed to %s", old.Name, after[i].Name)
		case j < 0:
			v.breaks(columnRemoved, old.Name, old.Type, "", "column %s is removed", old.Name)
		default:
			if j != i && place(before, old.Name) == i { // of columns with one name, the first stands for all
				v.breaks(columnMoved, old.Name, strconv.Itoa(i+1), strconv.Itoa(j+1), "column %s moves from place %d to %d", old.Name, i+1, j+1)
			}
			if typ := after[j].Type; typ != old.Type && typ != unknownType && old.Type != unknownType {
				v.breaks(columnRetyped, old.Name, old.Type, typ, "column %s is %s, before it was %s", old.Name, typ, old.Type)
			}
		}
	}
	for i, c := range after {
		if !taken[i] && place(before, c.Name) < 0 {
			v.Compatible = append(v.Compatible, versionChange{columnAdded, c.Name, "", c.Type, fmt.Sprintf("column %s is added", c.Name)})
		}
	}
}

// compareVariables: a run that gives a variable which is gone is refused, and one without a variable that has no default no
// longer says all that the query asks.
func (v *versionChanges) compareVariables(before, after map[string]endpointVariable) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[name]; !ok {
			v.breaks(variableRemoved, name, before[name].Type, "", "variable %s is removed", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		now := after[name]
		was, known := before[name]
		switch {
		case known && now.Type != was.Type:
			v.breaks(variableRetyped, name, was.Type, now.Type, "variable %s is a %s, before it was a %s", name, now.Type, was.Type)
		case now.Required && !was.Required:
			v.breaks(variableRequired, name, "", now.Type, "variable %s is needed, for it has no default", name)
		case !known:
			v.Compatible = append(v.Compatible, versionChange{variableAdded, name, "", now.Type, fmt.Sprintf("variable %s is added", name)})
		}
	}
}

// endpointVariable is a variable that runs of a version take.
type endpointVariable struct {
	Type     string // String, Number …; empty for the variables of insights
	Required bool   // neither the query nor the definition has a value for runs without it
}

// variablesOf are the variables that runs of a version take, by name: contract section 5.5.
func variablesOf(snap *registry.Snapshot, project int64, v *registry.Version) map[string]endpointVariable {
	found := make(map[string]endpointVariable)
	node, err := query.Parse(v.Query)
	if err != nil {
		return found // written by an older program; runs say what is wrong with it
	}
	if n, ok := node.(query.Insight); ok {
		for _, name := range query.VariableNames(n) {
			found[name] = endpointVariable{}
		}
	}
	if n, ok := node.(*query.HogQL); ok {
		for _, v := range n.Variables {
			def := snap.VariableByCode(project, v.CodeName)
			if def == nil {
				continue // deleted: runs say so
			}
			found[v.CodeName] = endpointVariable{Type: string(def.Type), Required: !v.HasValue && !v.IsNull && def.Default == nil}
		}
	}
	return found
}

func kindOf(v *registry.Version) string {
	node, err := query.Parse(v.Query)
	if err != nil {
		return ""
	}
	return node.Kind()
}
