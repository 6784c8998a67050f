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
	// returns, and revision is the next number; it is 0 when fn changed nothing. When fn returns an error nothing of it
	// stays, and Write returns that error. fn may be run more than once.
	Write(ctx context.Context, fn func(Tx) error) (revision uint64, err error)
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

	// Key returns a key by its id, revoked ones too.
	Key(ctx context.Context, id string) (Key, error)
	// CountKeys counts the keys of one kind of a project that are not revoked.
	CountKeys(ctx context.Context, project int64, kind KeyKind) (int, error)
	// InsertKey adds a key.
	InsertKey(ctx context.Context, k Key) error
	// UpdateKey replaces the hash, mask and times of the key with this id.
	UpdateKey(ctx context.Context, k Key) error

	// Endpoint returns the endpoint of this name that is not deleted, with its versions.
	Endpoint(ctx context.Context, project int64, name string) (Endpoint, error)
	// InsertEndpoint adds an endpoint and its versions.
	InsertEndpoint(ctx context.Context, e Endpoint) error
	// UpdateEndpoint replaces the active flag, tags, current version and times of the endpoint with this id; its versions stay.
	UpdateEndpoint(ctx context.Context, e Endpoint) error
	// InsertVersion adds a version to the endpoint with this id.
	InsertVersion(ctx context.Context, endpoint string, v Version) error
	// UpdateVersion replaces description, freshness, active flag, columns and times of the version with this number.
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

	// PutProperties sets the types of properties. With learn those that have a type already keep it. It returns those that
	// are new or changed.
	PutProperties(ctx context.Context, project int64, defs []PropertyDefinition, learn bool) ([]PropertyDefinition, error)
	// PutGroupTypes adds group types. One that is there already as it is given is no conflict. It returns those that are new.
	PutGroupTypes(ctx context.Context, project int64, types []GroupType) ([]GroupType, error)

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

// ProjectRecord is all that a store holds of one project, but for deleted endpoints.
type ProjectRecord struct {
	Project    Project
	Keys       []Key      // revoked ones too
	Endpoints  []Endpoint // with versions by number
	Variables  []Variable
	Properties []PropertyDefinition
	GroupTypes []GroupType
}
