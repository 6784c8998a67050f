package registry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// draft is the next snapshot in the making. What is not changed stays shared with the one before.
type draft struct {
	next     *Snapshot
	keys     tableDraft[[32]byte, *keyEntry]
	projects tableDraft[int64, *projectState]
	own      map[int64]*ownParts
}

// ownParts tells which parts of a project the draft has copied already.
type ownParts struct{ keys, endpoints, variables, insights, dashboards bool }

func newDraft(from *Snapshot) *draft {
	next := *from
	d := &draft{next: &next, own: make(map[int64]*ownParts)}
	d.keys.table, d.projects.table = &next.keys, &next.projects
	return d
}

// project returns the draft's own state of a project, nil when there is no such project.
func (d *draft) project(id int64) (*projectState, *ownParts) {
	p := d.next.projects.get(id)
	if p == nil {
		return nil, nil
	}
	own := d.own[id]
	if own == nil {
		own = &ownParts{}
		d.own[id] = own
		copied := *p
		p = &copied
		d.projects.put(id, p)
	}
	return p, own
}

// finish returns the snapshot; the draft can't be used again.
func (d *draft) finish(revision uint64) *Snapshot {
	for id, own := range d.own {
		p := d.next.projects.get(id)
		if own.endpoints {
			p.listEndpoints()
		}
		if own.variables {
			p.listVariables()
		}
		if own.insights {
			p.listInsights()
		}
		if own.dashboards {
			p.listDashboards()
		}
	}
	d.next.Revision, d.next.Serial = revision, serials.Add(1)
	return d.next
}

// replace puts a project as the store has it in place of what was there.
func (d *draft) replace(rec ProjectRecord) error {
	before := d.next.projects.get(rec.Project.ID)
	if before == nil {
		before = &projectState{}
	} else {
		d.drop(rec.Project.ID)
	}
	location, err := loadZone(rec.Project.Timezone)
	if err != nil {
		return err
	}
	for _, e := range rec.Endpoints {
		if e.CurrentVersion < 1 || e.CurrentVersion > len(e.Versions) {
			return fmt.Errorf("endpoint %s is at version %d and has %d", e.ID, e.CurrentVersion, len(e.Versions))
		}
	}
	p := &projectState{
		schema: &ProjectSchema{
			Project: rec.Project, Location: location, Properties: rec.Properties, GroupTypes: rec.GroupTypes, Cohorts: rec.Cohorts,
		},
		keys:       make(map[string]*keyEntry, len(rec.Keys)),
		endpoints:  make(map[string]*endpointEntry, len(rec.Endpoints)),
		variables:  make(map[string]*Variable, len(rec.Variables)),
		insights:   make(map[int64]*Insight, len(rec.Insights)),
		dashboards: make(map[int64]*Dashboard, len(rec.Dashboards)),

		tokenSecrets: rec.TokenSecrets,
	}
	p.schema.sort()
	if err := p.schema.readSettings(); err != nil {
		return err
	}
	if before.schema != nil && before.schema.same(p.schema) {
		p.schema = before.schema
	}
	d.projects.put(rec.Project.ID, p)
	d.own[rec.Project.ID] = &ownParts{keys: true, endpoints: true, variables: true, insights: true, dashboards: true}
	for _, k := range rec.Keys {
		d.addKey(p, k, before.keys[k.ID])
	}
	for _, e := range rec.Endpoints {
		p.addEndpoint(e, before.endpoints[e.Name])
	}
	for _, v := range rec.Variables {
		p.variables[v.CodeName] = &v
	}
	for _, i := range rec.Insights {
		p.insights[i.ID] = &i
	}
	for _, board := range rec.Dashboards {
		p.dashboards[board.ID] = &board
	}
	return nil
}

// drop takes a project and its keys out.
func (d *draft) drop(id int64) {
	for _, e := range d.next.projects.get(id).keys {
		d.keys.remove(e.Hash)
	}
	d.projects.remove(id)
	delete(d.own, id)
}

func (d *draft) putProject(p Project) {
	if err := d.replace(ProjectRecord{Project: p}); err != nil {
		panic("BUG: a project that was just made can't be used: " + err.Error())
	}
}

// setProject puts a project's settings in place of what they were.
func (d *draft) setProject(given Project) {
	p, _ := d.project(given.ID)
	if p == nil {
		return // made by another process since; the reload that follows brings all of it
	}
	next := *p.schema
	next.Project = given
	location, err := loadZone(given.Timezone)
	if err == nil {
		next.Location = location
		err = next.readSettings()
	}
	if err != nil {
		panic("BUG: a project that was just checked can't be used: " + err.Error())
	}
	p.schema = &next
}

func (d *draft) putKey(k Key) {
	p, own := d.project(k.Project)
	if p == nil {
		return // made by another process since; the reload that follows brings all of it
	}
	if !own.keys {
		own.keys = true
		p.keys = maps.Clone(p.keys)
	}
	before := p.keys[k.ID]
	if before != nil {
		d.keys.remove(before.Hash)
	}
	d.addKey(p, k, before)
}

func (d *draft) removeKey(p *projectState, own *ownParts, id string) {
	e := p.keys[id]
	if e == nil {
		return
	}
	if !own.keys {
		own.keys = true
		p.keys = maps.Clone(p.keys)
	}
	d.keys.remove(e.Hash)
	delete(p.keys, id)
}

func (d *draft) addKey(p *projectState, k Key, before *keyEntry) {
	e := &keyEntry{Key: k}
	if before != nil {
		e.used = before.used
	} else {
		e.used = new(atomic.Int64)
	}
	raise(e.used, k.LastUsedAt)
	p.keys[k.ID] = e
	if k.RevokedAt.IsZero() {
		d.keys.put(k.Hash, e)
	}
}

func (d *draft) putEndpoint(e Endpoint) {
	if p := d.ownEndpoints(e.Project); p != nil {
		p.addEndpoint(e, p.endpoints[e.Name])
	}
}

func (d *draft) deleteEndpoint(project int64, name string) {
	if p := d.ownEndpoints(project); p != nil {
		delete(p.endpoints, name)
	}
}

func (d *draft) ownEndpoints(project int64) *projectState {
	p, own := d.project(project)
	if p != nil && !own.endpoints {
		own.endpoints = true
		p.endpoints = maps.Clone(p.endpoints)
	}
	return p
}

func (p *projectState) addEndpoint(e Endpoint, before *endpointEntry) {
	entry := &endpointEntry{Endpoint: e, executed: make([]*atomic.Int64, len(e.Versions))}
	if before != nil && before.ID == e.ID {
		copy(entry.executed, before.executed)
	}
	for i, v := range e.Versions {
		if entry.executed[i] == nil {
			entry.executed[i] = new(atomic.Int64)
		}
		raise(entry.executed[i], v.LastExecutedAt)
	}
	p.endpoints[e.Name] = entry
}

func (d *draft) putVariable(v Variable) {
	if p := d.ownVariables(v.Project); p != nil {
		p.variables[v.CodeName] = &v
	}
}

func (d *draft) deleteVariable(project int64, id string) {
	if p := d.ownVariables(project); p != nil {
		maps.DeleteFunc(p.variables, func(_ string, v *Variable) bool { return v.ID == id })
	}
}

func (d *draft) ownVariables(project int64) *projectState {
	p, own := d.project(project)
	if p != nil && !own.variables {
		own.variables = true
		p.variables = maps.Clone(p.variables)
	}
	return p
}

func (d *draft) putInsight(i Insight) {
	p, own := d.project(i.Project)
	if p == nil {
		return
	}
	d.ownInsights(p, own)
	p.insights[i.ID] = &i
}

func (d *draft) ownInsights(p *projectState, own *ownParts) {
	if !own.insights {
		own.insights = true
		p.insights = maps.Clone(p.insights)
	}
}

func (d *draft) ownDashboards(p *projectState, own *ownParts) {
	if !own.dashboards {
		own.dashboards = true
		p.dashboards = maps.Clone(p.dashboards)
	}
}

func (d *draft) putDashboards(changed []Dashboard) {
	for _, board := range changed {
		p, own := d.project(board.Project)
		if p == nil {
			return
		}
		d.ownDashboards(p, own)
		p.dashboards[board.ID] = &board
	}
}

func (d *draft) putSchema(project int64, defs []PropertyDefinition, groups []GroupType) {
	p, _ := d.project(project)
	if p == nil {
		return
	}
	next := *p.schema
	changed := make(map[PropertyDefinition]bool, len(defs)) // with an empty type
	for _, def := range defs {
		def.Type = ""
		changed[def] = true
	}
	next.Properties = make([]PropertyDefinition, 0, len(p.schema.Properties)+len(defs))
	for _, def := range p.schema.Properties {
		place := def
		place.Type = ""
		if !changed[place] {
			next.Properties = append(next.Properties, def)
		}
	}
	next.Properties = append(next.Properties, defs...)
	next.GroupTypes = slices.Concat(p.schema.GroupTypes, groups)
	next.sort()
	p.schema = &next
}

func (s *ProjectSchema) sort() {
	slices.SortFunc(s.Properties, func(a, b PropertyDefinition) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.GroupTypeIndex, b.GroupTypeIndex), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(s.GroupTypes, func(a, b GroupType) int { return cmp.Compare(a.Index, b.Index) })
	slices.SortFunc(s.Cohorts, func(a, b Cohort) int { return cmp.Compare(a.ID, b.ID) })
}

// readSettings reads those settings that are stored as JSON.
func (s *ProjectSchema) readSettings() (err error) {
	if s.TestAccounts, err = testAccounts(&s.Project); err != nil {
		return fmt.Errorf("reading the filters against test accounts: %w", err)
	}
	if s.PathCleaning, err = pathCleaning(&s.Project); err != nil {
		return fmt.Errorf("reading the rules of path cleaning: %w", err)
	}
	return nil
}

func (s *ProjectSchema) same(as *ProjectSchema) bool {
	return s.Project == as.Project && slices.Equal(s.Properties, as.Properties) && slices.Equal(s.GroupTypes, as.GroupTypes) &&
		slices.Equal(s.Cohorts, as.Cohorts)
}

func (p *projectState) listEndpoints() {
	p.endpointList = make([]*Endpoint, 0, len(p.endpoints))
	for _, e := range p.endpoints {
		p.endpointList = append(p.endpointList, &e.Endpoint)
	}
	slices.SortFunc(p.endpointList, func(a, b *Endpoint) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
}

func (p *projectState) listVariables() {
	p.variableList = slices.SortedFunc(maps.Values(p.variables), func(a, b *Variable) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	p.defaults = make(map[string]any, len(p.variables))
	for code, v := range p.variables {
		p.defaults[code] = v.Default
	}
}

func (p *projectState) listInsights() {
	p.insightList = make([]*Insight, 0, len(p.insights))
	p.insightCodes = make(map[string]*Insight, len(p.insights))
	for _, i := range p.insights {
		p.insightCodes[i.ShortID] = i
		if !i.Deleted {
			p.insightList = append(p.insightList, i)
		}
	}
	slices.SortFunc(p.insightList, func(a, b *Insight) int { return cmp.Compare(a.ID, b.ID) })
}

func (p *projectState) listDashboards() {
	p.dashboardList = nil
	p.tiles = make(map[int64][]*Tile)
	for _, board := range p.dashboards {
		if board.Deleted {
			continue
		}
		p.dashboardList = append(p.dashboardList, board)
		for i := range board.Tiles {
			if t := &board.Tiles[i]; !t.Deleted && t.Insight != 0 {
				p.tiles[t.Insight] = append(p.tiles[t.Insight], t)
			}
		}
	}
	slices.SortFunc(p.dashboardList, func(a, b *Dashboard) int { return cmp.Compare(a.ID, b.ID) })
	for _, tiles := range p.tiles {
		slices.SortFunc(tiles, func(a, b *Tile) int { return cmp.Compare(a.ID, b.ID) })
	}
}

// raise moves a clock of Unix seconds forward to t, never back.
func raise(clock *atomic.Int64, t time.Time) {
	if t.IsZero() {
		return
	}
	for {
		was := clock.Load()
		if t.UnixMicro() <= was || clock.CompareAndSwap(was, t.UnixMicro()) {
			return
		}
	}
}
