package execution

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// knownSchema caches what derives from a project's schema alone, for as long as the schema stays the same.
type knownSchema struct {
	of *registry.ProjectSchema
	// untyped is the part of all marks that does not depend on the query.
	untyped string
	// typed are the indexes of the properties that are no text, by name.
	typed map[string][]int
	// actions and cohorts are those that queries can refer to.
	actions     *query.Actions
	cohorts     schema.Cohorts
	actionMarks map[int64]string // digests of name and steps
	byCohort    map[int64]*registry.SchemaCohort
}

// schemaOf returns what derives from the schema of a project.
func (k *known) schemaOf(of *registry.ProjectSchema) *knownSchema {
	if found, ok := k.schemas.Load(of.Project.ID); ok {
		if known, _ := found.(*knownSchema); known.of == of {
			return known
		}
	}
	untyped := []any{
		of.Project.Timezone, of.Project.WeekStart, of.Project.TestAccountFilters, of.Project.PathCleaningFilters, of.DisplayNames, of.GroupTypes,
	}
	known := &knownSchema{
		of: of, cohorts: CohortsOf(of.Cohorts, nil), byCohort: make(map[int64]*registry.SchemaCohort, len(of.Cohorts)),
		actions: actionsOf(of.Actions), actionMarks: make(map[int64]string, len(of.Actions)),
		untyped: digest(untyped...), typed: make(map[string][]int, len(of.Properties)),
	}
	for i := range of.Properties {
		if d := &of.Properties[i]; d.Type != registry.PropertyString { // which means the same as no type
			known.typed[d.Name] = append(known.typed[d.Name], i)
		}
	}
	for i := range of.Cohorts {
		known.byCohort[of.Cohorts[i].ID] = &of.Cohorts[i]
	}
	for i := range of.Actions {
		known.actionMarks[of.Actions[i].ID] = digest(&of.Actions[i])
	}
	k.schemas.Store(of.Project.ID, known)
	return known
}

// mark returns the mark of a query in a project with this schema and these default variables.
func (k *known) mark(of *registry.ProjectSchema, variables map[string]any, node query.Node) string {
	known := k.schemaOf(of)
	properties := map[int]bool{} // a text may repeat a name many times
	add := func(name string) {
		for _, index := range known.typed[name] {
			properties[index] = true
		}
	}
	for _, own := range compiler.OwnProperties {
		add(own)
	}
	uses := compiler.NamesOf(node, known.env(variables), add)
	mark := known.untyped + known.types(slices.Sorted(maps.Keys(properties)), uses.AllProperties) + known.used(&uses)
	if from := of.EventsFrom(time.Now()); !from.IsZero() {
		mark += " from " + from.Format(time.RFC3339)
	}
	return mark
}

// keptMark is mark without the types of properties, which are in the texts of pieces and in the queries that fill tables, and without the part that
// changes daily in a project that does not keep its events forever.
func (k *known) keptMark(of *registry.ProjectSchema, variables map[string]any, node query.Node) string {
	known := k.schemaOf(of)
	uses := compiler.UsesOf(node, known.env(variables))
	return known.untyped + known.used(&uses)
}

// env returns what the search for the uses of a query needs.
func (k *knownSchema) env(variables map[string]any) compiler.Env {
	return compiler.Env{
		Database: &schema.Database{Cohorts: k.cohorts}, Variables: variables, TestAccounts: k.of.TestAccounts, Actions: k.actions, DisplayNames: k.of.DisplayNames,
	}
}

// types returns the part of a mark that covers the types of properties, given by their sorted indexes, or of all that are no text; empty if there are none.
func (k *knownSchema) types(properties []int, all bool) string {
	if all {
		properties = slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(k.typed))...)))
	}
	if len(properties) == 0 {
		return ""
	}
	definitions := make([]registry.PropertyDefinition, len(properties))
	for i, index := range properties {
		definitions[i] = k.of.Properties[index]
	}
	return " types " + digest(definitions)
}

// used returns the part of a mark that covers the actions and cohorts that a query depends on; empty if there are none.
func (k *knownSchema) used(uses *compiler.Uses) string {
	if uses.IsZero() {
		return ""
	}
	return " " + k.depends(uses)
}

// Mark returns the part of a cache key that changes with the meaning of a project's query: the project's time zone, start of week, test account
// filters, path cleaning rules, names of people and group types, and what the query depends on: types of properties that it may read, names and steps of
// actions, members of cohorts, and the names of the cohorts that label its answer. In a project that does not keep its events forever it also changes
// with each of the project's days.
func (c *Compiler) Mark(snap *registry.Snapshot, project int64, node query.Node) string {
	return c.known.mark(snap.Schema(project), snap.VariableDefaults(project), node)
}

// depends returns a digest of what a query depends on: the name and steps of actions, the version of the members of cohorts, and a cohort's name
// where the answer shows it. An id that does not exist yet is part of it too.
func (k *knownSchema) depends(uses *compiler.Uses) string {
	var parts []any
	for _, id := range reached(uses.Actions, uses.AllActions, k.actionMarks) {
		mark, found := k.actionMarks[id]
		parts = append(parts, id, found, mark)
	}
	parts = append(parts, "cohorts")
	for _, id := range reached(uses.Cohorts, uses.AllCohorts, k.byCohort) {
		c := k.byCohort[id]
		if c == nil {
			parts = append(parts, id, nil) // of another product, or none
			continue
		}
		parts = append(parts, id, c.Static, c.Version, c.Deleted)
		if _, labels := slices.BinarySearch(uses.Labels, id); labels {
			parts = append(parts, c.Name)
		}
	}
	return digest(parts...)
}

// reached returns the ids that a query depends on: the named ones, or with all also every known one.
func reached[T any](named []int64, all bool, known map[int64]T) []int64 {
	if !all {
		return named
	}
	out := slices.AppendSeq(slices.Clone(named), maps.Keys(known))
	slices.Sort(out)
	return slices.Compact(out)
}

// digest returns a hash of the JSON of values.
func digest(values ...any) string {
	text, err := json.Marshal(values)
	if err != nil {
		panic("BUG: encoding a project's schema: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
