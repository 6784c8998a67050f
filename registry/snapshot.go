package registry

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Snapshot is the registry at one moment. It never changes, and so do the values that it hands out: they are shared, and
// must not be written to. Lookups of a single thing take no lock and allocate nothing.
type Snapshot struct {
	// Revision is the store's revision that the snapshot shows. It may show a write of its own beyond that, and a store that was
	// restored counts the same revisions again.
	Revision uint64
	// Serial is another one for each snapshot of this process: what follows from a snapshot can be known by it.
	Serial uint64

	keys     table[[32]byte, *keyEntry] // those that are not revoked, by hash
	projects table[int64, *projectState]
}

// serials counts the snapshots of this process.
var serials atomic.Uint64

// projectState is all of one project.
type projectState struct {
	schema       *ProjectSchema
	keys         map[string]*keyEntry // by id, revoked ones too
	endpoints    map[string]*endpointEntry
	endpointList []*Endpoint          // newest first
	variables    map[string]*Variable // by code name
	variableList []*Variable          // oldest first
	defaults     map[string]any

	insights      map[int64]*Insight // deleted ones too
	insightCodes  map[string]*Insight
	insightList   []*Insight // those that are not deleted, by number
	dashboards    map[int64]*Dashboard
	dashboardList []*Dashboard      // those that are not deleted, by number
	tiles         map[int64][]*Tile // by insight, those that are not deleted on dashboards that are not

	tokenSecrets []TokenSecret // newest first
}

type keyEntry struct {
	Key
	used *atomic.Int64 // Unix microseconds of the last use that was seen here; shared by snapshots
}

type endpointEntry struct {
	Endpoint
	executed []*atomic.Int64 // the same for the executions of each version
}

// ProjectSchema is what decides how a project's queries are compiled. Snapshots share one value as long as nothing of it
// changes, so its address is a key for what is derived from it.
type ProjectSchema struct {
	Project    Project
	Location   *time.Location       // the project's zone
	Properties []PropertyDefinition // by scope, group type index and name
	GroupTypes []GroupType          // by index
	Cohorts    []Cohort             // by number
	// TestAccounts and PathCleaning are what the project's settings of these names say; nil for nothing.
	TestAccounts *query.Condition
	PathCleaning []query.PathCleaning
}

// KeyByHash returns the key whose text has this hash; nil for one that is unknown or revoked. The caller looks at Expired.
func (s *Snapshot) KeyByHash(hash [32]byte) *Key {
	if e := s.keys.get(hash); e != nil {
		return &e.Key
	}
	return nil
}

// Keys returns the keys of a project, revoked ones too, newest first.
func (s *Snapshot) Keys(project int64) []*Key {
	p := s.projects.get(project)
	if p == nil {
		return nil
	}
	keys := make([]*Key, 0, len(p.keys))
	for _, e := range p.keys {
		keys = append(keys, &e.Key)
	}
	slices.SortFunc(keys, func(a, b *Key) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return keys
}

// KeyByID returns a key of a project, revoked ones too; nil when there is none.
func (s *Snapshot) KeyByID(project int64, id string) *Key {
	if p := s.projects.get(project); p != nil {
		if e := p.keys[id]; e != nil {
			return &e.Key
		}
	}
	return nil
}

// TokenSecrets returns the secrets for tokens of a project, the one that signs first.
func (s *Snapshot) TokenSecrets(project int64) []TokenSecret {
	if p := s.projects.get(project); p != nil {
		return p.tokenSecrets
	}
	return nil
}

// Project returns a project; nil when there is none.
func (s *Snapshot) Project(id int64) *Project {
	if p := s.projects.get(id); p != nil {
		return &p.schema.Project
	}
	return nil
}

// Projects returns all projects by number.
func (s *Snapshot) Projects() []*Project {
	var projects []*Project
	for p := range s.projects.all() {
		projects = append(projects, &p.schema.Project)
	}
	slices.SortFunc(projects, func(a, b *Project) int { return cmp.Compare(a.ID, b.ID) })
	return projects
}

// Schema returns what decides how a project's queries are compiled; nil when there is no such project.
func (s *Snapshot) Schema(project int64) *ProjectSchema {
	if p := s.projects.get(project); p != nil {
		return p.schema
	}
	return nil
}

// Endpoint returns the endpoint of this name; nil when there is none.
func (s *Snapshot) Endpoint(project int64, name string) *Endpoint {
	if p := s.projects.get(project); p != nil {
		if e := p.endpoints[name]; e != nil {
			return &e.Endpoint
		}
	}
	return nil
}

// Endpoints returns the endpoints of a project, newest first.
func (s *Snapshot) Endpoints(project int64) []*Endpoint {
	if p := s.projects.get(project); p != nil {
		return p.endpointList
	}
	return nil
}

// Variables returns the insight variables of a project, oldest first.
func (s *Snapshot) Variables(project int64) []*Variable {
	if p := s.projects.get(project); p != nil {
		return p.variableList
	}
	return nil
}

// VariableByCode returns the insight variable of a code name; nil when there is none.
func (s *Snapshot) VariableByCode(project int64, code string) *Variable {
	if p := s.projects.get(project); p != nil {
		return p.variables[code]
	}
	return nil
}

// VariableByID returns an insight variable; nil when there is none.
func (s *Snapshot) VariableByID(project int64, id string) *Variable {
	for _, v := range s.Variables(project) {
		if v.ID == id {
			return v
		}
	}
	return nil
}

// VariableDefaults returns the default value of each insight variable by code name.
func (s *Snapshot) VariableDefaults(project int64) map[string]any {
	if p := s.projects.get(project); p != nil {
		return p.defaults
	}
	return nil
}

// PropertyDefinitions returns the types of a project's properties, by scope, group type index and name.
func (s *Snapshot) PropertyDefinitions(project int64) []PropertyDefinition {
	if p := s.projects.get(project); p != nil {
		return p.schema.Properties
	}
	return nil
}

// GroupTypes returns a project's group types by index.
func (s *Snapshot) GroupTypes(project int64) []GroupType {
	if p := s.projects.get(project); p != nil {
		return p.schema.GroupTypes
	}
	return nil
}

// Insights returns the insights of a project that are not deleted, by number.
func (s *Snapshot) Insights(project int64) []*Insight {
	if p := s.projects.get(project); p != nil {
		return p.insightList
	}
	return nil
}

// Insight returns an insight; nil when there is none, or it is deleted.
func (s *Snapshot) Insight(project, id int64) *Insight {
	if i := s.AnyInsight(project, id); i != nil && !i.Deleted {
		return i
	}
	return nil
}

// AnyInsight returns an insight, deleted or not; nil when there is none.
func (s *Snapshot) AnyInsight(project, id int64) *Insight {
	if p := s.projects.get(project); p != nil {
		return p.insights[id]
	}
	return nil
}

// AnyInsightByShortID returns an insight, deleted or not; nil when there is none.
func (s *Snapshot) AnyInsightByShortID(project int64, shortID string) *Insight {
	if p := s.projects.get(project); p != nil {
		return p.insightCodes[shortID]
	}
	return nil
}

// TilesOf returns where an insight stands on dashboards, by number of the tile.
func (s *Snapshot) TilesOf(project, insight int64) []*Tile {
	if p := s.projects.get(project); p != nil {
		return p.tiles[insight]
	}
	return nil
}

// Dashboards returns the dashboards of a project that are not deleted, by number.
func (s *Snapshot) Dashboards(project int64) []*Dashboard {
	if p := s.projects.get(project); p != nil {
		return p.dashboardList
	}
	return nil
}

// Dashboard returns a dashboard; nil when there is none, or it is deleted.
func (s *Snapshot) Dashboard(project, id int64) *Dashboard {
	if d := s.AnyDashboard(project, id); d != nil && !d.Deleted {
		return d
	}
	return nil
}

// AnyDashboard returns a dashboard, deleted or not; nil when there is none.
func (s *Snapshot) AnyDashboard(project, id int64) *Dashboard {
	if p := s.projects.get(project); p != nil {
		return p.dashboards[id]
	}
	return nil
}
