package execution

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// basis is what the rows of a result depend on. Results with an equal basis are equal.
type basis struct {
	query [sha256.Size]byte // a digest of what ClickHouse is asked and of how its rows are processed
	data  uint64            // the version of the data that are read
	known bool              // data is known
}

// Renewal says how a result was found to be unchanged. Nothing was computed for it.
type Renewal struct {
	// Compile is how long compiling took, and Probe how long asking ClickHouse about its tables took; 0 if it was not asked.
	Compile, Probe time.Duration
}

// basisOf returns the basis, still without the data, of a query compiled at a given time; nil if the rows may change while the data stay the same.
func (x *Computation) basisOf(ctx context.Context, compiled *compiler.Compiled, at time.Time) *basis {
	if compiled.Reads.Volatile || x.query.Held != nil || compiled.ByClock {
		return nil
	}
	params, err := x.timeless(ctx, compiled, at)
	if err != nil {
		return nil
	}
	of := []any{
		compiled.SQL, params, compiled.HogQL, compiled.EventsFrom, compiled.Columns, compiled.Types, compiled.Limit, compiled.Offset, compiled.Probe,
		compiled.DefaultLimit,
	}
	if x.query.Stored != nil {
		of = append(of, x.query.Stored.AsOf)
	}
	if compiled.Shape != nil { // its buckets may move with the clock
		answer, err := compiled.Shape(func(func([]byte) bool) {})
		if err != nil {
			return nil
		}
		drawn := *answer
		drawn.Results = nil // they can be large
		of = append(of, &drawn, sha256.Sum256(answer.Results))
	}
	text, err := json.Marshal(of)
	if err != nil {
		return nil
	}
	return &basis{query: sha256.Sum256(text)}
}

// timeless returns the values of a query compiled at a given time, without the time of day. Queries of persons leave out those created more than a
// day ahead. Only the day of that limit is kept, so such a person may show up a day late if nothing else happens to any person.
func (x *Computation) timeless(ctx context.Context, compiled *compiler.Compiled, at time.Time) ([]compiler.Param, error) {
	if !slices.Contains(compiled.Reads.Tables, physical.Persons) {
		return compiled.Params, nil
	}
	db, err := x.exec.Database(ctx, x.Snapshot.Schema(x.Project.ID))
	if err != nil {
		return nil, err
	}
	const layout = "2006-01-02 15:04:05.000000"
	tomorrow := physical.CreatedBefore(at)
	params := slices.Clone(compiled.Params)
	for n := range params {
		if v := &params[n].Value; *v == tomorrow.In(db.Location).Format(layout) || *v == tomorrow.UTC().Format(layout) {
			*v = tomorrow.UTC().Format(time.DateOnly)
		}
	}
	return params, nil
}

// unchanged looks at the data and returns the stored result if the computation would give the same; else nil.
func (x *Computation) unchanged(ctx context.Context, at *turn, compiled *compiler.Compiled, of *basis, done *Details, began time.Time) *cache.Entry {
	probing := time.Now()
	x.look(ctx, at, compiled, of)
	if x.warehouse().Probes() {
		done.Probe = time.Since(probing)
	}
	return x.renewed(of, began, Renewal{done.Compile, done.Probe})
}

// look records the state of the data. What is read afterwards is at least as new.
func (x *Computation) look(ctx context.Context, at *turn, compiled *compiler.Compiled, of *basis) {
	data, err := x.warehouse().Data(ctx, at.place, x.Project.ID, compiled.Reads)
	if err != nil {
		of.known = false
		return
	}
	at.data = data
	of.data, of.known = data.Version(compiled.Reads, time.Time{}, time.Time{})
}

// renewed returns the stored result, dated at, if its basis is the one that a result computed then would have; else nil.
func (x *Computation) renewed(of *basis, at time.Time, how Renewal) *cache.Entry {
	if !x.renews || !of.known {
		return nil
	}
	stored, ok := x.exec.Cache.Peek(x.query.Key, cache.Policy{})
	if !ok {
		return nil
	}
	before, ok := stored.Entry.Meta.(*Details)
	if !ok || before.basis == nil || *before.basis != *of {
		return nil
	}
	done := *before
	done.Renewal, done.Buckets = &how, Buckets{}
	if done.Insight != nil {
		done.over = x.query.isOver(done.Insight, at)
	}
	x.query.meter(x.exec.Metrics).renewal()
	return stored.Entry.Renew(at, &done, done.Size())
}
