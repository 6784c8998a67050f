package endpoints

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/materialize"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// tableOf returns the plan of the table that a version has or would have. Its error is a *materialize.Refusal, or the reason why it can't be planned now.
// by are the compiles on which its time counts.
func tableOf(
	ctx context.Context, exec *execution.Executor, by *execution.Compiles, c *api.Caller, e *registry.Endpoint, v *registry.Version, node query.Node,
) (*materialize.Plan, error) {
	of := execution.Subject{Project: c.Project.ID, Endpoint: e.Name, Version: v.Number, Node: node, Optional: v.OptionalBreakdowns}
	if v.Table != nil {
		of.Buckets = v.Table.Buckets
	}
	return exec.KnownTable(ctx, c.Snapshot, by, v.ID, of, c.Start)
}

// errNotNow says that a table can't be planned now.
var errNotNow = errors.New("ClickHouse has not answered yet.") //nolint:staticcheck // shown to users as it is

// shownTable is tableOf for a record or a document, which neither waits for ClickHouse nor counts on the caller's rate.
func shownTable(
	ctx context.Context, exec *execution.Executor, c *api.Caller, e *registry.Endpoint, v *registry.Version, node query.Node,
) (*materialize.Plan, error) {
	if exec.Shards.Of(c.Project.ID).Known() == nil {
		return nil, errNotNow
	}
	return tableOf(ctx, exec, execution.Uncounted(c.Project.ID), c, e, v, node)
}

// stored finds the table that a run of a materialized version reads. It refuses a run without a required variable, which would read the whole table
// (contract: clients.md, section 6). It returns nil if the query itself has to run.
func (p *planner) stored(ctx context.Context, node query.Node, bound *binding) (*execution.Stored, error) {
	if p.Version.Table == nil {
		return nil, nil
	}
	var plan *materialize.Plan
	var err error
	if p.exec.Shards.Of(p.c.Project.ID).Known() != nil {
		by := p.exec.CompilesOf(&p.c.Caller)
		if plan, err = tableOf(ctx, p.exec, by, p.c, p.Endpoint, p.Version, node); execution.IsRefusal(err) || ctx.Err() != nil {
			return nil, err
		}
	}
	if plan == nil && !errors.As(err, new(*materialize.Refusal)) {
		p.Until = p.c.Start // ClickHouse could not be asked: the next run may find a table
	}
	if err := bound.check(p.Version, node, plan); err != nil {
		return nil, err
	}
	until := readUntil(p.Version)
	if p.direct || plan == nil || bound.overridden || !isReadable(p.Version.Table, plan) || !p.c.Start.Before(until) || !plan.Serves(bound.values) {
		return nil, nil
	}
	if p.Until.IsZero() || until.Before(p.Until) {
		p.Until = until
	}
	return storedTable(p.Endpoint, p.Version, plan, bound)
}

// isReadable reports whether a table is filled according to its plan.
func isReadable(t *registry.Table, plan *materialize.Plan) bool {
	return t.Fill != 0 && t.Of == plan.Mark
}

// readUntil returns the time after which a version's table is too old to be read.
func readUntil(v *registry.Version) time.Time { return v.Table.AsOf.Add(freshness(v)) }

func storedTable(e *registry.Endpoint, v *registry.Version, plan *materialize.Plan, bound *binding) (*execution.Stored, error) {
	table, err := execution.TableOf(e, v, v.Table.Fill)
	if err != nil {
		return nil, err
	}
	return &execution.Stored{Plan: plan, Table: table, AsOf: v.Table.AsOf, Until: readUntil(v), Values: bound.values}, nil
}

// check refuses a run of a materialized version without a required variable; NULL counts as missing. plan is nil if the version has none.
func (b *binding) check(v *registry.Version, node query.Node, plan *materialize.Plan) error {
	var missing []string
	for _, name := range requiredVariables(v, node, plan) {
		if b.values[name] == nil {
			missing = append(missing, "'"+name+"'")
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return api.Invalid("variables", "invalid_input", "Required variable(s) %s not provided", strings.Join(missing, ", "))
}

// requiredVariables returns the variables that runs of a materialized version must give, sorted.
func requiredVariables(v *registry.Version, node query.Node, plan *materialize.Plan) []string {
	insight, ok := node.(query.Insight)
	if !ok {
		if plan == nil {
			return nil
		}
		return plan.Required
	}
	if !compiler.KindOf(node).OptionalBreakdowns {
		return nil
	}
	names := slices.DeleteFunc(query.VariableNames(insight), func(name string) bool {
		return isDate(name) || slices.Contains(v.OptionalBreakdowns, name)
	})
	slices.Sort(names)
	return names
}

// isDate reports whether a variable of an insight is a bound of its date range.
func isDate(name string) bool { return name == "date_from" || name == "date_to" }

// breakdownOf returns the value that the first property of valid overrides gives to the only breakdown of an insight; name is empty if it gives none. same
// reports whether the overrides do nothing else, so that a variable with that value is equivalent.
func breakdownOf(n query.Insight, overrides json.RawMessage) (name string, value any, same bool) {
	names := slices.DeleteFunc(query.VariableNames(n), isDate)
	var given struct {
		Properties []struct {
			Type     string `json:"type"`
			Group    any    `json:"group_type_index"`
			Key      string `json:"key"`
			Value    any    `json:"value"`
			Operator string `json:"operator"`
		} `json:"properties"`
	}
	var all map[string]json.RawMessage
	if len(names) != 1 || json.Unmarshal(overrides, &given) != nil || json.Unmarshal(overrides, &all) != nil || len(given.Properties) == 0 {
		return "", nil, false
	}
	first := given.Properties[0]
	split := slices.ContainsFunc((*n.Parts().Breakdowns).Fields, func(b query.Breakdown) bool {
		return b.Property == first.Key && b.Type == cmp.Or(first.Type, "event") && (b.Type != "group" || first.Group == float64(b.Group))
	})
	if first.Key != names[0] || first.Operator != "" && first.Operator != "exact" || !split {
		return "", nil, false
	}
	if list, ok := first.Value.([]any); ok {
		first.Value = nil
		if len(list) > 0 {
			first.Value = list[0]
		}
		same = len(list) == 1
	} else {
		same = true
	}
	same = same && len(given.Properties) == 1 && len(all) == 1
	if text, ok := first.Value.(string); ok {
		return names[0], text, same
	}
	return names[0], first.Value, false
}
