package registry

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/immutable"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Snapshot is the registry at one moment. It never changes, nor do the values that it returns: they are shared, and must not be
// modified. Lookups of a single thing take no lock and allocate nothing.
type Snapshot struct {
	// Revision is the store's revision that the snapshot shows. The snapshot may also show its own write beyond that. A store that was restored counts the same
	// revisions again.
	Revision uint64
	mark     int64 // of Revision: tells it from the same revision of a store that was set back

	keys          *immutable.Map[[32]byte, *keyEntry]         // that are not revoked, by hash
	endpoints     *immutable.Map[endpointKey, *endpointEntry] // that are not deleted
	captureTokens *immutable.Map[string, int64]               // projects by token
	projects      *immutable.Map[int64, *projectState]
	sequences     map[Kind]int64 // the last number used for each kind
	removals      map[int64]*Removal
	broken        map[int64]bool // projects that are left out
}

// serials numbers the states of all projects in this process, so that no two of them have the same number.
var serials atomic.Uint64

// projectState is all of one project.
type projectState struct {
	serial      uint64 // see Snapshot.Serial
	querySerial uint64 // see Snapshot.QuerySerial

	settings      ProjectSchema // without the lists that are in tables
	usage         Usage
	tokenSecrets  []TokenSecret  // newest first
	captureTokens []CaptureToken // newest first

	keys        table[string, *keyEntry]
	endpoints   table[string, *endpointEntry]
	variables   table[string, *Variable]
	insights    table[int64, *Insight]
	dashboards  table[int64, *Dashboard]
	cohorts     table[int64, *Cohort]
	actions     table[int64, *Action]
	alerts      table[string, *Alert]
	definitions table[string, *Definition]
	annotations table[int64, *Annotation]
	deletions   table[string, *Deletion]
	properties  *immutable.SortedMap[PropertyDefinition, propertyState] // by the definition without its type

	alertsOf *immutable.SortedMap[alertPlace, *Alert]

	tiles  *immutable.SortedMap[int64, []*Tile] // by insight: tiles that are not deleted, on dashboards that are not
	placed *immutable.SortedMap[int64, []int64] // by insight, or minus the number of a text: the dashboards that have a tile of it, deleted or not

	// Derived from the tables when first asked for. Snapshots share it until a write changes it.
	schema       func() *ProjectSchema
	endpointList func() []*Endpoint
	defaults     func() map[string]any
}

func newProjectState() *projectState {
	p := &projectState{
		keys: newTable[string, *keyEntry](), endpoints: newTable[string, *endpointEntry](), variables: newTable[string, *Variable](),
		insights: newTable[int64, *Insight](), dashboards: newTable[int64, *Dashboard](), cohorts: newTable[int64, *Cohort](),
		actions: newTable[int64, *Action](), alerts: newTable[string, *Alert](),
		definitions: newTable[string, *Definition](), annotations: newTable[int64, *Annotation](), deletions: newTable[string, *Deletion](),
		properties: immutable.NewSortedMap[PropertyDefinition, propertyState](propertyOrder{}),
		alertsOf:   immutable.NewSortedMap[alertPlace, *Alert](alertPlaces{}),
		tiles:      immutable.NewSortedMap[int64, []*Tile](ascending[int64]{}), placed: immutable.NewSortedMap[int64, []int64](ascending[int64]{}),
	}
	p.endpointsChanged()
	p.variablesChanged()
	return p
}

// project returns the state of a project; nil if there is none.
func (s *Snapshot) project(id int64) *projectState {
	if s.projects == nil {
		return nil
	}
	p, _ := s.projects.Get(id)
	return p
}

// Serial returns a number that differs for each state of a project in this process, so it can be the key of what is derived from any part of the project; 0 if
// there is no such project. A write to another project does not change it.
func (s *Snapshot) Serial(project int64) uint64 {
	if p := s.project(project); p != nil {
		return p.serial
	}
	return 0
}

// QuerySerial is like Serial, but changes only with what determines the meaning of the project's queries: what Schema returns, and the insight variables.
// Endpoints, insights, dashboards, alerts, annotations and keys do not affect it.
func (s *Snapshot) QuerySerial(project int64) uint64 {
	if p := s.project(project); p != nil {
		return p.querySerial
	}
	return 0
}

// Hashers of the maps over all projects.
type (
	projectHasher  struct{}
	hashHasher     struct{}
	endpointHasher struct{}
)

// endpointKey names an endpoint.
type endpointKey struct {
	project int64
	name    string
}

func (projectHasher) Hash(id int64) uint32   { return uint32(id ^ id>>32) } //nolint:gosec // a hash may lose bits
func (projectHasher) Equal(a, b int64) bool  { return a == b }
func (hashHasher) Hash(hash [32]byte) uint32 { return binary.LittleEndian.Uint32(hash[:4]) }
func (hashHasher) Equal(a, b [32]byte) bool  { return a == b }

func (endpointHasher) Hash(e endpointKey) uint32 {
	return textHasher{}.Hash(e.name) ^ projectHasher{}.Hash(e.project)
}
func (endpointHasher) Equal(a, b endpointKey) bool { return a == b }

type keyEntry struct {
	Key
	used *atomic.Int64 // Unix microseconds of the last use that was seen here; shared by snapshots
}

type endpointEntry struct {
	Endpoint
	deleted  time.Time       // zero if it is not deleted
	executed []*atomic.Int64 // likewise for the executions of each version
}

// ProjectSchema determines how a project's queries are compiled. Snapshots share one value until something in it changes, so its address is a key for what is
// derived from it.
type ProjectSchema struct {
	Project    Project
	Location   *time.Location       // the project's zone
	Properties []PropertyDefinition // by scope, group type index and name
	// Values has the noted kinds of values of properties, by the definition without its type; see [Registry.Widen].
	Values     map[PropertyDefinition]physical.Kinds
	GroupTypes []GroupType        // by index
	Cohorts    []SchemaCohort     // by number, including deleted ones
	Actions    []ActionDefinition // by number, including deleted ones, which errors name
	// TestAccounts and PathCleaning are the parsed settings of these names; nil for none.
	TestAccounts *query.Condition
	PathCleaning []query.PathCleaning
	// DisplayNames are the properties that name a person, best first; nil for the usual ones.
	DisplayNames []string
}

// KeyByHash returns the key whose text has this hash; nil if it is unknown or revoked. The caller checks Expired.
func (s *Snapshot) KeyByHash(hash [32]byte) *Key {
	if s.keys == nil {
		return nil
	}
	if e, _ := s.keys.Get(hash); e != nil {
		return &e.Key
	}
	return nil
}

// Keys returns the keys of a project, including revoked ones, newest first.
func (s *Snapshot) Keys(project int64) []*Key {
	p := s.project(project)
	if p == nil {
		return nil
	}
	entries := valuesOf(p.keys.byID, nil)
	slices.SortFunc(entries, (*keyEntry).compare)
	return keysOf(entries)
}

// SecretKeys returns the secret keys of a project that are not revoked, newest first.
func (s *Snapshot) SecretKeys(project int64) []*Key {
	if p := s.project(project); p != nil {
		return keysOf(valuesOf(p.keys.list, nil))
	}
	return nil
}

func keysOf(entries []*keyEntry) []*Key {
	keys := make([]*Key, len(entries))
	for i, e := range entries {
		keys[i] = &e.Key
	}
	return keys
}

// KeyByID returns a key of a project, even a revoked one; nil if there is none.
func (s *Snapshot) KeyByID(project int64, id string) *Key {
	if p := s.project(project); p != nil {
		if e := p.keys.get(id); e != nil {
			return &e.Key
		}
	}
	return nil
}

// TokenSecrets returns the token secrets of a project, the one that signs first.
func (s *Snapshot) TokenSecrets(project int64) []TokenSecret {
	if p := s.project(project); p != nil {
		return p.tokenSecrets
	}
	return nil
}

// Project returns a project; nil if there is none.
func (s *Snapshot) Project(id int64) *Project {
	if p := s.project(id); p != nil {
		return &p.settings.Project
	}
	return nil
}

// Projects returns all projects by number.
func (s *Snapshot) Projects() []*Project {
	var projects []*Project
	if s.projects == nil {
		return nil
	}
	for each := s.projects.Iterator(); !each.Done(); {
		_, p, _ := each.Next()
		projects = append(projects, &p.settings.Project)
	}
	slices.SortFunc(projects, func(a, b *Project) int { return cmp.Compare(a.ID, b.ID) })
	return projects
}

// Schema returns what determines how a project's queries are compiled; nil if there is no such project.
func (s *Snapshot) Schema(project int64) *ProjectSchema {
	if p := s.project(project); p != nil {
		return p.schema()
	}
	return nil
}

// Endpoint returns the endpoint with this name; nil if there is none.
func (s *Snapshot) Endpoint(project int64, name string) *Endpoint {
	if e := s.endpoint(project, name); e != nil {
		return &e.Endpoint
	}
	return nil
}

func (s *Snapshot) endpoint(project int64, name string) *endpointEntry {
	if s.endpoints == nil {
		return nil
	}
	e, _ := s.endpoints.Get(endpointKey{project, name})
	return e
}

// Endpoints returns the endpoints of a project, newest first.
func (s *Snapshot) Endpoints(project int64) []*Endpoint {
	if p := s.project(project); p != nil {
		return p.endpointList()
	}
	return nil
}

// Variables returns the insight variables of a project, oldest first.
func (s *Snapshot) Variables(project int64) []*Variable {
	if p := s.project(project); p != nil {
		return valuesOf(p.variables.list, nil)
	}
	return nil
}

// VariablePage returns a part of the insight variables of a project, oldest first, and their total number. Its cost grows with offset and limit, not with the
// number of variables.
func (s *Snapshot) VariablePage(project int64, offset, limit int) (page []*Variable, total int) {
	if p := s.project(project); p != nil {
		return p.variables.page(offset, limit), p.variables.list.Len()
	}
	return nil, 0
}

// VariableByCode returns the insight variable with a code name; nil if there is none.
func (s *Snapshot) VariableByCode(project int64, code string) *Variable {
	if p := s.project(project); p != nil {
		return p.variables.coded(code)
	}
	return nil
}

// VariableByID returns an insight variable; nil if there is none.
func (s *Snapshot) VariableByID(project int64, id string) *Variable {
	if p := s.project(project); p != nil {
		return p.variables.get(id)
	}
	return nil
}

// VariableDefaults returns the default value of each insight variable by code name.
func (s *Snapshot) VariableDefaults(project int64) map[string]any {
	if p := s.project(project); p != nil {
		return p.defaults()
	}
	return nil
}

// PropertyDefinitions returns the types of a project's properties, by scope, group type index and name.
func (s *Snapshot) PropertyDefinitions(project int64) []PropertyDefinition {
	if p := s.project(project); p != nil {
		return p.schema().Properties
	}
	return nil
}

// ValuesOf returns the noted kinds of values of a property; 0 for none. The type of the definition is ignored.
func (s *Snapshot) ValuesOf(project int64, d PropertyDefinition) physical.Kinds {
	if p := s.project(project); p != nil {
		state, _ := p.properties.Get(d.place())
		return state.kinds
	}
	return 0
}

// GroupTypes returns a project's group types by index.
func (s *Snapshot) GroupTypes(project int64) []GroupType {
	if p := s.project(project); p != nil {
		return p.settings.GroupTypes
	}
	return nil
}

// Insights returns the insights of a project that are not deleted, by number. Its cost grows with the number of insights; see InsightPage.
func (s *Snapshot) Insights(project int64) []*Insight {
	if p := s.project(project); p != nil {
		return valuesOf(p.insights.byID, func(i *Insight) bool { return !i.Deleted })
	}
	return nil
}

// AllInsights returns the insights of a project by number, including deleted ones.
func (s *Snapshot) AllInsights(project int64) []*Insight {
	if p := s.project(project); p != nil {
		return valuesOf(p.insights.byID, nil)
	}
	return nil
}

// InsightPage returns a part of the insights of a project that are not deleted, by Order, those without one last, and then by number; and their total number.
// Its cost grows with offset and limit, not with the number of insights.
func (s *Snapshot) InsightPage(project int64, offset, limit int) (page []*Insight, total int) {
	if p := s.project(project); p != nil {
		return p.insights.page(offset, limit), p.insights.list.Len()
	}
	return nil, 0
}

// Insight returns an insight; nil if there is none, or it is deleted.
func (s *Snapshot) Insight(project, id int64) *Insight {
	if i := s.AnyInsight(project, id); i != nil && !i.Deleted {
		return i
	}
	return nil
}

// AnyInsight returns an insight, deleted or not; nil if there is none.
func (s *Snapshot) AnyInsight(project, id int64) *Insight {
	if p := s.project(project); p != nil {
		return p.insights.get(id)
	}
	return nil
}

// AnyInsightByShortID returns an insight, deleted or not; nil if there is none.
func (s *Snapshot) AnyInsightByShortID(project int64, shortID string) *Insight {
	if p := s.project(project); p != nil {
		return p.insights.coded(shortID)
	}
	return nil
}

// TilesOf returns the tiles of an insight on dashboards that are not deleted, by number of the tile.
func (s *Snapshot) TilesOf(project, insight int64) []*Tile {
	if p := s.project(project); p != nil {
		tiles, _ := p.tiles.Get(insight)
		return tiles
	}
	return nil
}

// Dashboards returns the dashboards of a project that are not deleted, by number.
func (s *Snapshot) Dashboards(project int64) []*Dashboard {
	if p := s.project(project); p != nil {
		return valuesOf(p.dashboards.list, nil)
	}
	return nil
}

// AllDashboards returns the dashboards of a project by number, including deleted ones.
func (s *Snapshot) AllDashboards(project int64) []*Dashboard {
	if p := s.project(project); p != nil {
		return valuesOf(p.dashboards.byID, nil)
	}
	return nil
}

// Dashboard returns a dashboard; nil if there is none, or it is deleted.
func (s *Snapshot) Dashboard(project, id int64) *Dashboard {
	if d := s.AnyDashboard(project, id); d != nil && !d.Deleted {
		return d
	}
	return nil
}

// AnyDashboard returns a dashboard, deleted or not; nil if there is none.
func (s *Snapshot) AnyDashboard(project, id int64) *Dashboard {
	if p := s.project(project); p != nil {
		return p.dashboards.get(id)
	}
	return nil
}
