package execution

import (
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Query says which result is wanted and how to compute it if it is not there. It is immutable and shared by all equal requests.
type Query struct {
	Key   cache.Key
	Node  query.Node
	Rows  compiler.Mode
	Text  string // of the query, for the positions of its mistakes
	Paged bool   // pages are cut from the result

	// Held returns the rows of the held tables that the query names; nil for a query that can't read any.
	Held *Held

	// Stored is the table that holds the rows; nil for none.
	Stored *Stored

	// Recipe says how another server plans the same query; nil if only this server can.
	Recipe *Recipe

	Endpoint *registry.Endpoint // nil on the query route
	Version  *registry.Version
	Marks    string // the values of the run's variables
	// The names that the caller gave the query: ClientID is used to ask about it and to cancel it, and Label is shown in the query log. Either may be empty.
	ClientID, Label string

	counted cache.Link[meter] // see meter
}

// Held returns the rows of tables that ClickHouse does not have. A query with it belongs to one caller, so it is not remembered for others.
type Held struct {
	// Tables are the names of the tables that Rows knows. Others may see the result only if they may read all of them.
	Tables []string
	Rows   func(table string) ([][]any, error)
	// Readable reports whether the caller may read a table.
	Readable func(table string) bool
	Mark     string // the part of a cache key that changes when the rows do
}

// Size returns about how many bytes of memory a query takes. It encodes the node, so it takes longer for a larger one.
func (q *Query) Size() int {
	size := q.texts() + 512
	if q.Node == nil {
		return size
	}
	node := q.Node.Canonical()
	if q.Text == "" {
		size += 2 * len(node) // in the node and in the key
	}
	return size + query.DecodedSize(node)
}

// texts returns about how many bytes the texts of a query take, without those of its key.
func (q *Query) texts() int { return 2*len(q.Text) + 2*len(q.Marks) + q.Recipe.Size() }

// MaxRows is how many rows one result holds at most: contract api.md, section 8.
const MaxRows = 50_000

// Details are what a result holds besides its rows; cached answers show them again.
type Details struct {
	ExecutionID uuid.UUID
	HogQL       string
	SQL         string
	Limit       int
	Offset      int      // rows that the query skips
	OwnLimit    bool     // the query has a LIMIT of its own
	Columns     []string // names
	Head        []byte   // columns and types as JSON members
	Compile     time.Duration
	Stats       clickhouse.Stats
	Insight     *insightAnswer // the answer of an insight, instead of rows; else nil
	over        bool           // its range had ended, so computing it again would give the same
	Missing     *int           // rows about actors of whom nothing is known; nil for answers without actors
	Version     int            // of the endpoint; 0 on the query route
	Marks       string         // of an endpoint: the values of the variables
	Warnings    []byte         // a JSON array; nil for none
	// Probe is how long asking ClickHouse about its tables took; 0 if it was not asked.
	Probe time.Duration
	// Renewal is set if the result was computed earlier than it says and would come out the same again.
	Renewal *Renewal
	basis   *basis // nil if the rows may change at any time
	// Materialized is when the table that the rows come from was filled; zero for rows of the query itself.
	Materialized time.Time
	Zone         string // the project's when the rows were computed
	// Buckets says how much of the answer was computed for it. SQL is that of the query that ran last; of the whole query if none ran.
	Buckets Buckets
	asked   bool // the execution id was given to a query
	// Peer is how long it took to get the result from the server that owns it; 0 if this server computed it.
	Peer time.Duration
}

// Size returns about how many bytes of memory the details take.
func (d *Details) Size() int {
	return len(d.HogQL) + len(d.SQL) + len(d.Head) + len(d.Marks) + len(d.Warnings) + d.Insight.size() + 256
}

// meter returns the counters of the query. It looks them up once.
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

// The most that one result may hold in memory; a larger one is refused. While it is sent, a result is in memory several times: as rows, as a page,
// and as garbage not yet collected. Only insights come near the number of rows: other queries have a LIMIT.
const (
	MaxResultBytes = insight.MaxResults
	MaxResultRows  = 1_000_000
)
