// Package files changes the endpoints of a project to match files, and exports them as files.
package files

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/materialize"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints/publish"
	"github.com/caddy-analytics/caddy-analytics/module/api/references"
	"github.com/caddy-analytics/caddy-analytics/module/endpointfile"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Files plans and applies changes.
type Files struct {
	Executor *execution.Executor
	Registry *registry.Registry
	Forget   func(*registry.Endpoint) // drops the counters of a deleted endpoint
	// References knows the actions and cohorts that queries use.
	References *references.Index
}

// Plan is a plan of changes, with the batch that makes them.
type Plan struct {
	adminapi.FilesPlan

	batch registry.Batch
}

// IsPassing reports whether an error says nothing about the files: ClickHouse can't be asked, or too many queries run.
func IsPassing(err error) bool {
	return execution.StaleIsBetter(err) || execution.IsRefusal(err) || errors.Is(err, admission.ErrTooLong) || errors.Is(err, admission.ErrQueueFull)
}

// planner makes a Plan.
type planner struct {
	exec    *execution.Executor
	project *registry.Project
	snap    *registry.Snapshot // the current state
	preview *registry.Snapshot // the future state, with the variables of the files
	now     time.Time
	plan    *Plan

	references *references.Index
}

// Plan works out what files change in a project, without writing anything. With prune, endpoints without a file are deleted. The error is ErrNotFound for
// an unknown project, or joined *endpointfile.Error values for mistakes in the files.
func (s *Files) Plan(ctx context.Context, project int64, files []*endpointfile.File, prune bool, now time.Time) (*Plan, error) {
	p := &planner{exec: s.Executor, snap: s.Registry.Snapshot(), now: now, references: s.References, plan: &Plan{FilesPlan: adminapi.FilesPlan{
		Project: project, Endpoints: []adminapi.PlannedEndpoint{}, Variables: []adminapi.PlannedVariable{}, Unmanaged: []string{},
	}}}
	if p.project = p.snap.Project(project); p.project == nil {
		return nil, fmt.Errorf("project %d: %w", project, registry.ErrNotFound)
	}
	if err := p.variables(files); err != nil {
		return nil, err
	}
	var err error
	if p.preview, err = p.snap.Preview(project, p.plan.batch, now); err != nil {
		return nil, fmt.Errorf("looking ahead: %w", err)
	}
	var mistakes []error
	named := make(map[string]bool, len(files))
	for _, f := range files {
		named[f.Name] = true
		if err := p.endpoint(ctx, f); err != nil {
			mistakes = append(mistakes, err)
			if IsPassing(err) {
				break // the other files would wait in vain too
			}
		}
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	p.others(named, prune)
	b := &p.plan.batch
	p.plan.Changed = len(b.NewVariables)+len(b.Variables)+len(b.NewEndpoints)+len(b.Endpoints)+len(b.Deleted) > 0
	return p.plan, nil
}

// Apply changes a project's endpoints to match their files, all at once or not at all.
func (s *Files) Apply(ctx context.Context, plan *Plan, now time.Time) error {
	if !plan.Changed {
		return nil
	}
	before := s.Registry.Snapshot()
	if err := s.Registry.Apply(ctx, plan.Project, plan.batch, now); err != nil {
		return err
	}
	for _, name := range plan.batch.Deleted {
		if e := before.Endpoint(plan.Project, name); e != nil {
			s.Forget(e)
		}
	}
	return nil
}

// endpoint plans the endpoint of a file. It asks ClickHouse about queries that change.
func (p *planner) endpoint(ctx context.Context, f *endpointfile.File) error {
	raw, err := p.queryOf(f)
	if err != nil {
		return err
	}
	pub := publish.ForOperator(p.exec, p.preview, p.project)
	checked, err := pub.Read(raw)
	if err != nil {
		return fileMistake(f, "query", err)
	}
	if err := publish.CheckOptionalBreakdowns(checked.Node, f.OptionalBreakdowns); err != nil {
		return fileMistake(f, "optional_breakdown_properties", err)
	}
	known := p.snap.Endpoint(p.project.ID, f.Name)
	same := known != nil && checked.Same(known.Current().Query)
	switch {
	case !same:
		checked, err = pub.Check(ctx, raw, p.now)
	case len(p.plan.batch.Variables) > 0: // the query must still compile with the new variables
		_, err = pub.Compile(ctx, checked.Node, p.now)
	}
	if err != nil {
		return fileMistake(f, "query", err)
	}
	if err := p.table(ctx, f, known, checked, same); err != nil {
		return err
	}
	if known == nil {
		p.plan.batch.NewEndpoints = append(p.plan.batch.NewEndpoints, registry.NewEndpoint{
			Name: f.Name, Query: checked.Raw, Description: f.Description, FreshnessSeconds: int(f.Freshness / time.Second), Inactive: !f.Active,
			Tags: f.Tags, Columns: checked.Columns, OptionalBreakdowns: f.OptionalBreakdowns, RateLimit: f.RateLimit, Table: tableUpdate(f),
		})
		p.plan.Endpoints = append(p.plan.Endpoints, adminapi.PlannedEndpoint{Name: f.Name, Path: f.Path, Action: adminapi.Create, Fields: []string{}, Version: 1})
		return nil
	}
	p.change(f, known, checked, same)
	return nil
}

// change plans the changes to an existing endpoint.
func (p *planner) change(f *endpointfile.File, known *registry.Endpoint, checked *publish.Query, same bool) {
	now := known.Current()
	planned := adminapi.PlannedEndpoint{Name: f.Name, Path: f.Path, Action: adminapi.Keep, Fields: []string{}}
	update := registry.EndpointUpdate{}
	next := *now
	if !same {
		planned.Fields, planned.Version = append(planned.Fields, "query"), len(known.Versions)+1
		update.Query, update.Columns, update.SameQuery = checked.Raw, checked.Columns, checked.Same
		next = registry.Version{Number: planned.Version, Query: checked.Raw, Columns: checked.Columns}
	}
	comparison := publish.Comparison{Snapshot: p.preview, Before: p.snap, References: p.references, Project: p.project.ID}
	comparison.Compare(now, &next)
	if found := comparison.Found; !same || found.Any() {
		planned.Changes = found
		p.plan.Breaking = p.plan.Breaking || len(found.Breaking) > 0
	}
	changeField(&planned, "description", now.Description, f.Description, &update.Description)
	changeField(&planned, "data_freshness_seconds", now.FreshnessSeconds, int(f.Freshness/time.Second), &update.FreshnessSeconds)
	changeField(&planned, "is_active", known.Active, f.Active, &update.Active)
	changeField(&planned, "rate_limit", known.RateLimit, f.RateLimit, &update.RateLimit)
	changeList(&planned, "tags", known.Tags, registry.PlainTags(f.Tags), &update.Tags)
	changeList(&planned, "optional_breakdown_properties", next.OptionalBreakdowns, f.OptionalBreakdowns, &update.OptionalBreakdowns)
	p.changeTable(&planned, f, now.Table)
	if len(planned.Fields) > 0 {
		update.Table = tableUpdate(f)
		planned.Action = adminapi.Update
		p.plan.batch.Endpoints = append(p.plan.batch.Endpoints, registry.NamedEndpointUpdate{Name: f.Name, EndpointUpdate: update})
	}
	p.plan.Endpoints = append(p.plan.Endpoints, planned)
}

// changeTable plans changes to the endpoint's table.
func (p *planner) changeTable(planned *adminapi.PlannedEndpoint, f *endpointfile.File, now *registry.Table) {
	if f.Materialized != (now != nil) {
		planned.Fields = append(planned.Fields, "is_materialized")
	}
	if f.Materialized && now != nil && !maps.Equal(f.Buckets, now.Buckets) {
		planned.Fields = append(planned.Fields, "bucket_overrides")
	}
}

// tableUpdate returns what a file says about the table of its endpoint.
func tableUpdate(f *endpointfile.File) registry.TableUpdate {
	u := registry.TableUpdate{On: new(f.Materialized), Buckets: f.Buckets}
	if u.Buckets == nil {
		u.Buckets = map[string]string{} // nil would keep the current ones
	}
	return u
}

// table checks that an endpoint can be materialized, if its file says so and this changes its query, its buckets, its optional
// breakdowns, or whether it is materialized.
func (p *planner) table(ctx context.Context, f *endpointfile.File, known *registry.Endpoint, checked *publish.Query, same bool) error {
	if !f.Materialized {
		if len(f.Buckets) > 0 {
			return f.Mistake("bucket_overrides", "bucket_overrides are for endpoints that are materialized")
		}
		return nil
	}
	version := 1
	if known != nil {
		if now := known.Current(); same && now.Table != nil && maps.Equal(now.Table.Buckets, f.Buckets) && slices.Equal(now.OptionalBreakdowns, f.OptionalBreakdowns) {
			return nil
		}
		version = len(known.Versions) + 1
	}
	_, err := p.exec.PlanTable(ctx, p.preview, execution.Uncounted(p.project.ID), execution.Subject{
		Project: p.project.ID, Endpoint: f.Name, Version: version, Node: checked.Node, Buckets: f.Buckets, Optional: f.OptionalBreakdowns,
	}, p.now)
	reason := ""
	if refused, ok := errors.AsType[*materialize.Refusal](err); ok {
		reason, err = refused.Reason, nil
	} else if err == nil {
		reason, err = p.exec.Shards.Of(p.project.ID).CanMaterialize(ctx)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", f.Path, err)
	case reason != "":
		return f.Mistake("is_materialized", "cannot materialize the endpoint: %s", reason)
	}
	return nil
}

func changeField[T comparable](planned *adminapi.PlannedEndpoint, name string, now, wanted T, update **T) {
	if now != wanted {
		planned.Fields = append(planned.Fields, name)
		*update = &wanted
	}
}

func changeList(planned *adminapi.PlannedEndpoint, name string, now, wanted []string, update **[]string) {
	if !slices.Equal(now, wanted) {
		planned.Fields = append(planned.Fields, name)
		*update = new(api.OrEmpty(wanted))
	}
}

// fileMistake adds the position in the file to a mistake of the author; other errors keep their meaning.
func fileMistake(f *endpointfile.File, field string, err error) error {
	answer := api.ErrorOf(err)
	if answer.Status >= 500 || IsPassing(err) {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if refused, ok := answer.Extra.(api.MistakeExtra); ok && refused.Position != nil {
		return f.QueryMistake(refused.Line, answer.Detail)
	}
	return f.Mistake(field, "%s", answer.Detail)
}

// others plans the endpoints without a file.
func (p *planner) others(named map[string]bool, prune bool) {
	unnamed := make(map[string]bool)
	for _, e := range p.snap.Endpoints(p.project.ID) {
		if !named[e.Name] {
			unnamed[e.Name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unnamed)) {
		if !prune {
			p.plan.Unmanaged = append(p.plan.Unmanaged, name)
			p.bystander(name)
			continue
		}
		p.plan.batch.Deleted = append(p.plan.batch.Deleted, name)
		p.plan.Endpoints = append(p.plan.Endpoints, adminapi.PlannedEndpoint{Name: name, Action: adminapi.Delete, Fields: []string{}})
		p.plan.Breaking = true
	}
}

// bystander reports what changes for callers of an endpoint without a file when files change its variables.
func (p *planner) bystander(name string) {
	current := p.snap.Endpoint(p.project.ID, name).Current()
	comparison := publish.Comparison{Snapshot: p.preview, Before: p.snap, References: p.references, Project: p.project.ID}
	comparison.Compare(current, current)
	if found := comparison.Found; found.Any() {
		p.plan.Endpoints = append(p.plan.Endpoints, adminapi.PlannedEndpoint{Name: name, Action: adminapi.Keep, Fields: []string{}, Changes: found})
		p.plan.Breaking = p.plan.Breaking || len(found.Breaking) > 0
	}
}
