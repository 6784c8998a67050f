package execution

import (
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Query is which result is wanted, and how to compute that when it is not there. It is immutable, and shared by all requests that
// look the same.
type Query struct {
	Key   cache.Key
	Node  query.Node
	Rows  compiler.Mode
	Text  string // of the query, for the positions of its mistakes
	Paged bool   // pages are cut from the result

	// Held gives the rows of the held tables that the query names; nil for a query that can read none.
	Held *Held

	// Stored is the table that has the rows; nil for none.
	Stored *Stored

	// Recipe is how another server plans the same query; nil for one that this server alone can.
	Recipe *Recipe

	Endpoint *registry.Endpoint // nil on the query route
	Version  *registry.Version
	Marks    string // the values of the run's variables
	// The names that the caller gave the query: it can be asked about and cancelled by ClientID, and has Label in the query
	// log. Either may be empty.
	ClientID, Label string

	counted cache.Link[meter] // see meter
}

// Held gives the rows of tables that ClickHouse does not have. A query with it is of one caller, so that it is not remembered for others.
type Held struct {
	Rows func(table string) ([][]any, error)
	// Readable reports whether the caller may read a table.
	Readable func(table string) bool
	Mark     string // the part of a cache key that changes when the rows do
}

// Size is about what a query takes in memory, in bytes.
func (q *Query) Size() int { return 2*len(q.Text) + 2*len(q.Marks) + q.Recipe.Size() + 512 }

// MaxRows is the most rows that one result holds: contract section 8.
const MaxRows = 50_000

// Details are what a result carries beside its rows; cached answers show it again.
type Details struct {
	ExecutionID uuid.UUID
	HogQL       string
	SQL         string
	Limit       int
	Offset      int      // rows that the query passes over
	OwnLimit    bool     // the query has a LIMIT of its own
	Columns     []string // names
	Head        []byte   // columns and types as JSON members
	Compile     time.Duration
	Stats       clickhouse.Stats
	Insight     *insightAnswer // of an insight, in the place of rows; else nil
	over        bool           // its range had ended: computed again it would be the same
	Missing     *int           // how many rows are about actors of whom nothing is known; nil for answers without actors
	Version     int            // of the endpoint; 0 on the query route
	Marks       string         // of an endpoint: the values of the variables
	Warnings    []byte         // a JSON array; nil for none
	// Probe is how long ClickHouse was asked about its tables before; 0 for not at all.
	Probe time.Duration
	// Renewal is set on a result that was computed earlier than it says, and found to be as it would be computed again.
	Renewal *Renewal
	basis   *basis // nil if the rows may be others at any time
	// Materialized is when the table was filled that the rows are from; zero for rows of the query itself.
	Materialized time.Time
	// Buckets tell how much of the answer was computed for it. The SQL is that of the query that ran last; of the whole query if none ran.
	Buckets Buckets
	asked   bool // the execution id was given to a query
	// Peer is how long it took to get the result from the server that owns it; 0 for one that this server computed.
	Peer time.Duration
}

// Size is about what they take in memory, in bytes.
func (o *Details) Size() int {
	return len(o.HogQL) + len(o.SQL) + len(o.Head) + len(o.Marks) + len(o.Warnings) + o.Insight.size() + 256
}

// meter is where the query is counted: looked up once.
func (q *Query) meter(m *Metrics) *meter {
	if known := q.counted.Follow(); known != nil && !known.gone.Load() {
		return known
	}
	var name string
	if q.Endpoint != nil {
		name = q.Endpoint.Name
	}
	found := m.of(q.Key.Project(), name)
	q.counted.Set(found)
	return found
}

// The most that one result may hold in memory; larger ones are refused. On its way a result is there several times: as rows, as a page,
// and as what has yet to be collected as garbage. Only insights come near the rows: other queries have a LIMIT.
const (
	MaxResultBytes = 64 << 20
	MaxResultRows  = 1_000_000
)
