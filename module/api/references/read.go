package references

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/cohort"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// reader finds what a JSON text uses directly. It caches that while the names of actions and cohorts and the values of variables remain the same. It
// identifies texts by the address of their first byte: the registry never modifies one. It keeps only texts of the snapshot, since that address keeps the whole
// text in memory.
type reader struct {
	names  string
	env    compiler.Env
	before map[*byte]compiler.Uses // from the previous snapshot; nil once all of this one is read
	read   map[*byte]compiler.Uses
	done   bool // all of the snapshot is read: other texts are not cached
}

// next returns a reader for another snapshot, with what the previous reader found. A nil reader has found nothing.
func (r *reader) next(snap *registry.Snapshot, project int64) *reader {
	of := snap.Schema(project)
	n := &reader{names: namesOf(of), read: make(map[*byte]compiler.Uses), env: compiler.Env{Variables: snap.VariableDefaults(project)}}
	if r != nil && r.names == n.names && (sameMap(r.env.Variables, n.env.Variables) || reflect.DeepEqual(r.env.Variables, n.env.Variables)) {
		n.before = r.read
		n.env.Database, n.env.Actions = r.env.Database, r.env.Actions
		return n
	}
	n.env.Database, n.env.Actions = named(of)
	return n
}

// sameMap reports whether a and b are the same map.
func sameMap(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// namesOf returns a text that changes if the names of actions and cohorts do.
func namesOf(of *registry.ProjectSchema) string {
	var b strings.Builder
	add := func(kind string, id int64, name string) {
		b.WriteString(kind + strconv.FormatInt(id, 10) + strconv.Quote(name))
	}
	for i := range of.Actions {
		if a := &of.Actions[i]; !a.Deleted && a.Name != nil {
			add("a", a.ID, *a.Name)
		}
	}
	for i := range of.Cohorts {
		if c := &of.Cohorts[i]; !c.Deleted {
			add("c", c.ID, c.Name)
		}
	}
	return b.String()
}

// named returns the actions and cohorts of a project with nothing but their names, so that a query that uses an action does not count as using what the
// action's steps use.
func named(of *registry.ProjectSchema) (*schema.Database, *query.Actions) {
	actions := make([]query.Action, 0, len(of.Actions))
	for i := range of.Actions {
		a := &of.Actions[i]
		if !a.Deleted && a.Name != nil {
			actions = append(actions, query.Action{ID: a.ID, Name: *a.Name})
		}
	}
	cohorts := make([]schema.Cohort, 0, len(of.Cohorts))
	for i := range of.Cohorts {
		if c := &of.Cohorts[i]; !c.Deleted && c.Name != "" {
			cohorts = append(cohorts, schema.Cohort{ID: c.ID, Name: c.Name})
		}
	}
	return &schema.Database{Cohorts: schema.NewCohorts(cohorts, false)}, query.NewActions(actions)
}

// of returns what a text uses. A text that can't be read uses nothing.
func (r *reader) of(text json.RawMessage, read func(json.RawMessage) compiler.Uses) compiler.Uses {
	if len(text) == 0 {
		return compiler.Uses{}
	}
	place := &text[0]
	uses, ok := r.read[place]
	if !ok {
		uses, ok = r.before[place]
	}
	if !ok {
		uses = read(text)
	}
	if !r.done {
		r.read[place] = uses
	}
	return uses
}

func (r *reader) ofQuery(raw json.RawMessage) compiler.Uses {
	return r.of(raw, func(raw json.RawMessage) compiler.Uses {
		node, err := compiler.Parse(raw)
		if err != nil {
			return compiler.Uses{}
		}
		return compiler.UsesOf(node, r.env)
	})
}

// ofStep returns what the filters of an action's step use.
func (r *reader) ofStep(properties json.RawMessage) compiler.Uses {
	return r.of(properties, func(raw json.RawMessage) compiler.Uses {
		condition, err := query.ParseActionProperties(raw)
		if err != nil {
			return compiler.Uses{}
		}
		return compiler.UsesOfCondition(condition, r.env)
	})
}

// ofCohort returns what the definition of a cohort uses.
func (r *reader) ofCohort(c *registry.Cohort) compiler.Uses {
	text := c.Filters
	if len(text) == 0 {
		text = c.Groups
	}
	if c.Static {
		text = nil
	}
	return r.of(text, func(json.RawMessage) compiler.Uses {
		definition, err := cohort.Read(c.Filters, c.Groups)
		if err != nil {
			return compiler.Uses{}
		}
		return compiler.Uses{Actions: cohort.Actions(definition), Cohorts: cohort.Cohorts(definition)}
	})
}

// ofOverrides returns what the filters of a dashboard or a tile use.
func (r *reader) ofOverrides(raw json.RawMessage) compiler.Uses {
	return r.of(raw, func(raw json.RawMessage) compiler.Uses {
		given, err := query.ParseOverrides(raw)
		if err != nil {
			return compiler.Uses{}
		}
		return compiler.UsesOf(overrides{given}, r.env)
	})
}

// overrides is a query.Node for filters, so that their uses can be found.
type overrides struct{ *query.Overrides }

// Kind, Text and Canonical return nothing: there is no query.
func (overrides) Kind() string      { return "" }
func (overrides) Text() string      { return "" }
func (overrides) Canonical() []byte { return nil }
