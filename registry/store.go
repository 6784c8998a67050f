package registry

import (
	"context"
	"time"
)

// Store persists the registry. It checks uniqueness and references, and nothing else. It is safe for concurrent use, by
// several processes too where it can be shared. registrytest.Run examines one.
type Store interface {
	// Revision returns the number of the last write transaction that changed something; 0 for an empty store.
	Revision(ctx context.Context) (uint64, error)
	// Load returns whole every project that changed after revision since, as of one moment; 0 asks for everything.
	Load(ctx context.Context, since uint64) (*Changes, error)
	// Write runs fn in one transaction, alone among writers. When fn returns nil, what it did is durable before Write
	// returns, and revision is the next number; it is 0 when fn changed nothing that Load gives. When fn returns an error
	// nothing of it stays, and Write returns that error. fn may be run more than once.
	Write(ctx context.Context, fn func(Tx) error) (revision uint64, err error)
	// Activities returns a part of a project's activity log, newest first, and how many entries the log has.
	Activities(ctx context.Context, project int64, page ActivityPage) (entries []Activity, total int, err error)
	// Views returns the views of a project's insights at or after since, newest first, then by insight and viewer.
	Views(ctx context.Context, project int64, since time.Time) ([]View, error)
	// Close lets go of the store's resources.
	Close() error
}

// Tx is one write transaction of a Store; it sees its own writes. A method that names something that is not there returns
// ErrNotFound; one that would make two of what must be unique returns a *ConflictError. A method that changes something
// marks its project as changed in the revision of the transaction.
type Tx interface {
	// InsertProject adds p, and returns the number that it got: 1, 2, 3…
	InsertProject(ctx context.Context, p Project) (id int64, err error)
	// Project returns a project.
	Project(ctx context.Context, id int64) (Project, error)
	// UpdateProject replaces all but the number and the time of the project with this number.
	UpdateProject(ctx context.Context, p Project) error

	// Key returns a key by its id, revoked ones too.
	Key(ctx context.Context, id string) (Key, error)
	// CountKeys counts the keys of one kind of a project that are not revoked.
	CountKeys(ctx context.Context, project int64, kind KeyKind) (int, error)
	// NextUser returns the number of a new user, one above the greatest of all keys.
	NextUser(ctx context.Context) (int64, error)
	// InsertKey adds a key.
	InsertKey(ctx context.Context, k Key) error
	// UpdateKey replaces the label, hash, mask, scopes and times of the key with this id.
	UpdateKey(ctx context.Context, k Key) error

	// TokenSecrets returns the secrets for tokens of a project, in the order in which they were put.
	TokenSecrets(ctx context.Context, project int64) ([]TokenSecret, error)
	// PutTokenSecrets replaces the secrets for tokens of a project. They are newest first.
	PutTokenSecrets(ctx context.Context, project int64, secrets []TokenSecret) error

	// Endpoint returns the endpoint of this name that is not deleted, with its versions.
	Endpoint(ctx context.Context, project int64, name string) (Endpoint, error)
	// InsertEndpoint adds an endpoint and its versions.
	InsertEndpoint(ctx context.Context, e Endpoint) error
	// UpdateEndpoint replaces the active flag, tags, current version and times of the endpoint with this id; its versions stay.
	UpdateEndpoint(ctx context.Context, e Endpoint) error
	// InsertVersion adds a version to the endpoint with this id.
	InsertVersion(ctx context.Context, endpoint string, v Version) error
	// UpdateVersion replaces description, freshness, active flag, columns, optional breakdowns and times of the version with this
	// number.
	UpdateVersion(ctx context.Context, endpoint string, v Version) error
	// DeleteEndpoint hides an endpoint for good and frees its name.
	DeleteEndpoint(ctx context.Context, endpoint string, at time.Time) error

	// Variable returns an insight variable.
	Variable(ctx context.Context, project int64, id string) (Variable, error)
	// InsertVariable adds an insight variable.
	InsertVariable(ctx context.Context, v Variable) error
	// UpdateVariable replaces name, type, default, values and is_multi of the variable with this id.
	UpdateVariable(ctx context.Context, v Variable) error
	// DeleteVariable removes an insight variable.
	DeleteVariable(ctx context.Context, project int64, id string) error

	// Insight returns an insight, deleted ones too.
	Insight(ctx context.Context, project, id int64) (Insight, error)
	// InsertInsight adds an insight, and returns the number that it got: 1, 2, 3… over all projects.
	InsertInsight(ctx context.Context, i Insight) (id int64, err error)
	// UpdateInsight replaces all of the insight with this number but its short id, and when and by whom it was made.
	UpdateInsight(ctx context.Context, i Insight) error

	// Dashboard returns a dashboard with its tiles, deleted ones too.
	Dashboard(ctx context.Context, project, id int64) (Dashboard, error)
	// InsertDashboard adds a dashboard without tiles, and returns the number that it got: 1, 2, 3… over all projects.
	InsertDashboard(ctx context.Context, d Dashboard) (id int64, err error)
	// UpdateDashboard replaces all of the dashboard with this number but its tiles, and when and by whom it was made.
	UpdateDashboard(ctx context.Context, d Dashboard) error
	// TilesOf returns the tiles of an insight on all dashboards, deleted ones too, by number.
	TilesOf(ctx context.Context, project, insight int64) ([]Tile, error)
	// InsertTile adds a tile, and returns the number that it got.
	InsertTile(ctx context.Context, t Tile) (id int64, err error)
	// UpdateTile replaces all of the tile with this number but what it shows, and where.
	UpdateTile(ctx context.Context, t Tile) error

	// Cohort returns a cohort.
	Cohort(ctx context.Context, project, id int64) (Cohort, error)
	// InsertCohort adds a cohort, and returns its number: the given one, or for 0 one above the greatest that the project ever had.
	InsertCohort(ctx context.Context, c Cohort) (id int64, err error)
	// UpdateCohort replaces the name of the cohort with this number.
	UpdateCohort(ctx context.Context, c Cohort) error
	// DeleteCohort hides a cohort and frees its name. Its number can be asked for again, and is not given otherwise.
	DeleteCohort(ctx context.Context, project, id int64, at time.Time) error

	// InsertActivity adds an entry to the activity log. It changes nothing that Load gives.
	InsertActivity(ctx context.Context, a Activity) error
	// RecordViews moves the last view of insights with a key forward to at, never back. It changes nothing that Load gives.
	RecordViews(ctx context.Context, project int64, viewer string, insights []int64, at time.Time) error

	// PutProperties sets the types of properties. With learn those that have a type already keep it. It returns those that
	// are new or changed.
	PutProperties(ctx context.Context, project int64, defs []PropertyDefinition, learn bool) ([]PropertyDefinition, error)
	// PutGroupTypes adds group types. One that is there already as it is given is no conflict. It returns those that are new.
	PutGroupTypes(ctx context.Context, project int64, types []GroupType) ([]GroupType, error)

	// Usage returns what a project keeps, by kind, deleted records too; kinds without records may be left out. Bytes are those of the
	// texts, more or less; what it takes must not grow with the number of records.
	Usage(ctx context.Context, project int64) (Usage, error)
	// TrimActivities removes the oldest entries of a project's activity log, so that at most so many are left, which take at most so many bytes.
	// It changes nothing that Load gives.
	TrimActivities(ctx context.Context, project int64, entries int, bytes int64) error
	// Purge removes for good what of a project was deleted before a time, and keys that were revoked or expired before it: all but
	// personal keys that are the author of something that stays. A dashboard goes with its tiles, an insight with its tiles and views, an
	// endpoint with its versions. Numbers are not given again.
	Purge(ctx context.Context, project int64, before time.Time) (Purged, error)

	// KeyUsed moves the last use of a key forward to at, never back; an unknown key is no error. It tells whether it moved.
	KeyUsed(ctx context.Context, id string, at time.Time) (bool, error)
	// EndpointExecuted moves the last execution of an endpoint and of one of its versions forward to at, never back; an
	// unknown one is no error. It tells whether it moved.
	EndpointExecuted(ctx context.Context, endpoint string, version int, at time.Time) (bool, error)
}

// Changes is what Store.Load found.
type Changes struct {
	Revision uint64
	Projects []ProjectRecord // in the order of their numbers
}

// ProjectRecord is all that a store holds of one project, but for deleted endpoints and cohorts.
type ProjectRecord struct {
	Project    Project
	Keys       []Key      // revoked ones too
	Endpoints  []Endpoint // with versions by number
	Variables  []Variable
	Insights   []Insight   // deleted ones too
	Dashboards []Dashboard // deleted ones too, with tiles by number
	Properties []PropertyDefinition
	GroupTypes []GroupType
	Cohorts    []Cohort // without deleted ones

	TokenSecrets []TokenSecret // newest first
}
