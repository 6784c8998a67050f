package actions

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/events"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// checkSteps refuses steps that no query could use: it compiles their filters and selectors as those of an events query.
func (s *Actions) checkSteps(ctx context.Context, c *api.Caller, steps []registry.ActionStep) error {
	compiles := s.Executor.CompilesOf(&c.Caller)
	for i := range steps {
		condition, err := conditionOf(&steps[i])
		if err == nil && condition != nil {
			asked := &events.Query{Select: []string{"uuid"}, Properties: condition}
			_, err = s.Executor.Compile(ctx, c.Snapshot, compiles, &execution.Query{Node: asked, Rows: compiler.QueryRoute}, c.Start)
		}
		if err != nil {
			return mistakeIn(i, err)
		}
	}
	return nil
}

// checkLoop refuses an action whose steps depend on itself.
func (s *Actions) checkLoop(now *registry.Snapshot, a *registry.Action) error {
	if !a.Deleted && slices.Contains(s.References.OfSteps(now, a.Project, a.Steps).Actions, a.ID) {
		return api.Invalid("steps", "invalid_input", "Actions and cohorts cannot reference each other in a loop.")
	}
	return nil
}

// conditionOf returns the part of a step that only compiling can check; nil if there is none.
func conditionOf(step *registry.ActionStep) (*query.Condition, error) {
	all := &query.Condition{}
	if step.Properties != nil {
		given, err := query.ParseActionProperties(step.Properties)
		if err != nil {
			return nil, unreadable(err)
		}
		if given != nil {
			all.All = append(all.All, *given)
		}
	}
	if step.Selector != nil && api.Deref(step.Event) == query.Clicked { // it is ignored in steps with another event
		element := &query.Property{Type: "element", Key: "selector", Operator: "exact", Value: *step.Selector}
		all.All = append(all.All, query.Condition{At: "selector", Filter: element})
	}
	if len(all.All) == 0 {
		return nil, nil
	}
	return all, nil
}

// unreadable says which filter of a list cannot be read. The second line of the mistake names it, as in "project.properties.0.operator", and the third says
// what is wrong with it, as in "  Input should be …".
func unreadable(err error) error {
	lines := strings.SplitN(api.ErrorOf(err).Detail, "\n", 4)
	if len(lines) < 3 {
		return err
	}
	place := strings.TrimPrefix(lines[1], "project.")
	return api.Invalid(place, "invalid_input", "%s", strings.TrimSpace(lines[2]))
}

// mistakeIn says which step a mistake is in. A mistake that names no field is in the step's properties.
func mistakeIn(i int, err error) error {
	e := api.ErrorOf(err)
	if e.Status != http.StatusBadRequest {
		return err
	}
	attr, _ := e.Attr.(string)
	e.Attr = stepPrefix(i) + strings.ReplaceAll(cmp.Or(attr, "properties"), ".", "__")
	return e
}
