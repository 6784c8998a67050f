package cohort

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// The members of another cohort, by where they are kept, without the ids of people who became part of others or were deleted.
const (
	present  = `SELECT person_id FROM {members} WHERE {condition} AND person_id NOT IN (SELECT id FROM raw_persons WHERE is_deleted = 1) GROUP BY person_id`
	static   = `SELECT person_id FROM static_cohort_people WHERE cohort_id = {cohort}`
	computed = `SELECT person_id FROM raw_cohort_people WHERE cohort_id = {cohort} AND version = {version}`
	newest   = `SELECT person_id FROM cohort_people WHERE cohort_id = {cohort}`
)

// members lists the members of another cohort for whom a condition holds too.
func (b *builder) members(m *Member, condition conditions) (hogql.Query, error) {
	if err := b.missing(m); err != nil {
		return nil, err
	}
	kept := b.world.Database.Cohorts.Members(m.Cohort)
	values := map[string]any{"cohort": m.Cohort, "version": int64(kept.Version)} //nolint:gosec // versions are counted from 1
	var from []hogql.Query
	if kept.Given {
		from = append(from, insight.Template(static, values))
	}
	switch {
	case kept.Newest:
		from = append(from, insight.Template(newest, values))
	case kept.Computed:
		from = append(from, insight.Template(computed, values))
	}
	return insight.Template(present, map[string]any{
		"members": insight.From(insight.Union(from...)), "condition": insight.OrTrue(condition.on(PersonID)),
	}), nil
}

// missing says why a cohort cannot be asked for; nil for one that can. The error is a *diag.Error.
func (b *builder) missing(m *Member) error {
	if missing := b.world.Database.Cohorts.Missing(m.Cohort); missing != "" {
		return diag.Field(diag.InvalidInput, m.At+".value", "%s", missing)
	}
	return nil
}
