package cohort

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// The members of other cohorts, by where they are stored, without the ids of people who were merged into others or deleted.
const (
	present  = `SELECT person_id FROM {members} WHERE {condition} AND person_id NOT IN (SELECT id FROM raw_persons WHERE is_deleted = 1) GROUP BY person_id`
	static   = `SELECT person_id FROM static_cohort_people WHERE cohort_id IN {cohorts}`
	computed = `SELECT person_id FROM raw_cohort_people WHERE (cohort_id, version) IN {versions}`
	newest   = `SELECT person_id FROM cohort_people WHERE cohort_id IN {cohorts}`
)

// members lists the members of any of the cohorts in s for whom a condition holds too.
func (b *builder) members(s set, condition conditions) (hogql.Query, error) {
	given, versions, unknown := &hogql.Tuple{}, &hogql.Tuple{}, &hogql.Tuple{}
	_, err := b.condition(s, func(n Node) (hogql.Expr, error) {
		m := n.(*Member)
		kept, id := b.world.Database.Cohorts.Members(m.Cohort), insight.Const(m.Cohort)
		if kept.Given {
			given.Items = append(given.Items, id)
		}
		switch {
		case kept.Newest:
			unknown.Items = append(unknown.Items, id)
		case kept.Computed:
			version := insight.Const(int64(kept.Version)) //nolint:gosec // versions are counted from 1
			versions.Items = append(versions.Items, &hogql.Tuple{Items: []hogql.Expr{id, version}})
		}
		return nil, b.missing(m)
	})
	if err != nil {
		return nil, err
	}
	var from []hogql.Query
	if len(given.Items) > 0 {
		from = append(from, insight.Template(static, map[string]any{"cohorts": given}))
	}
	if len(versions.Items) > 0 {
		from = append(from, insight.Template(computed, map[string]any{"versions": versions}))
	}
	if len(unknown.Items) > 0 {
		from = append(from, insight.Template(newest, map[string]any{"cohorts": unknown}))
	}
	return insight.Template(present, map[string]any{
		"members": insight.From(insight.Union(from...)), "condition": insight.OrTrue(condition.on(PersonID)),
	}), nil
}

// missing returns why a cohort cannot be used; nil if it can. The error is a *diag.Error.
func (b *builder) missing(m *Member) error {
	if missing := b.world.Database.Cohorts.Missing(m.Cohort); missing != "" {
		return diag.Field(diag.InvalidInput, m.At+".value", "%s", missing)
	}
	return nil
}
