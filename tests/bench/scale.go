package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite"
)

// amounts says how much a registry holds. A tenth of the endpoints, keys and insights are in the measured project.
type amounts struct{ projects, endpoints, keys, insights int }

// sizes are the compared registries.
var sizes = []amounts{
	{projects: 10, endpoints: 100, keys: 100, insights: 1000},
	{projects: 100, endpoints: 1000, keys: 1000, insights: 10_000},
	{projects: 1000, endpoints: 10_000, keys: 10_000, insights: 100_000},
}

// costs are the median costs of a registry of one size.
type costs struct {
	start, write, publish, list, listEndpoints, hit time.Duration
	memory                                          int64 // resident, of the server, in bytes
}

// By what factor costs that should not grow may be higher in a registry a hundred times as large.
const (
	maxGrowth    = 1.5
	maxHitGrowth = 1.1
)

// scale measures which costs grow with the registry.
func scale(ctx context.Context, folder string) (goals []goal, err error) {
	fmt.Printf("Registries of three sizes, milliseconds, medians of %d\n\n", scaleRuns)
	fmt.Printf("%8s %9s %7s %9s | %8s %8s %8s %8s %9s %7s %10s\n", "projects", "endpoints", "keys", "insights",
		"start", "write", "publish", "insights", "endpoints", "hit", "memory, MB")
	all := make([]costs, len(sizes))
	for i, size := range sizes {
		if all[i], err = size.measure(ctx, folder, i); err != nil {
			return nil, err
		}
		c := all[i]
		fmt.Printf("%8d %9d %7d %9d | %8.0f %8.2f %8.2f %8.2f %9.2f %7.2f %10.0f\n", size.projects, size.endpoints, size.keys, size.insights,
			ms(c.start), ms(c.write), ms(c.publish), ms(c.list), ms(c.listEndpoints), ms(c.hit), float64(c.memory)/1e6)
	}
	fmt.Println()
	few, many := all[0], all[len(all)-1]
	grown := func(what string, bound float64, of func(costs) time.Duration) {
		goals = append(goals, atMost(what+", a registry 100 times as large", "the small one", bound, float64(of(many))/float64(of(few))))
	}
	grown("a write of an insight", maxGrowth, func(c costs) time.Duration { return c.write })
	grown("publishing a version", maxGrowth, func(c costs) time.Duration { return c.publish })
	grown("first page of insights", maxGrowth, func(c costs) time.Duration { return c.list })
	grown("first page of endpoints", maxGrowth, func(c costs) time.Duration { return c.listEndpoints })
	grown("a cached run", maxHitGrowth, func(c costs) time.Duration { return c.hit })
	return goals, nil
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// scaleRuns is how often each request is sent. Hits are sent ten times as often.
const scaleRuns = 100

// measure fills a registry and measures a server that uses it.
func (a amounts) measure(ctx context.Context, folder string, number int) (c costs, err error) {
	client, err := open(folder, "scale"+strconv.Itoa(number), "limits {\n\t\t\trate 100000/s\n\t\t\trecords 200000\n\t\t}")
	if err != nil {
		return c, err
	}
	server := client.Server
	stopped := false
	defer func() {
		if !stopped {
			err = errors.Join(err, server.Stop())
		}
	}()
	if err := publish(client); err != nil {
		return c, err
	}
	if err := server.Stop(); err != nil {
		return c, err
	}
	stopped = true
	if err := a.fill(ctx, filepath.Join(server.Folder, "data", sqlite.FileName), client.Project); err != nil {
		return c, err
	}
	began := time.Now()
	if err := server.Run(); err != nil {
		return c, err
	}
	stopped, c.start = false, time.Since(began)
	if _, err := warm(client); err != nil {
		return c, err
	}
	for _, m := range []struct {
		into         *time.Duration
		times        int
		method, path string
		status       int
		body         func(n int) any
	}{
		{&c.write, scaleRuns, http.MethodPost, "insights/", http.StatusCreated, func(n int) any {
			return map[string]any{"name": fmt.Sprint("new ", n), "query": json.RawMessage(scaleInsight)}
		}},
		{&c.publish, scaleRuns, http.MethodPatch, "endpoints/" + scaleEndpoint(0) + "/", http.StatusOK, func(n int) any {
			return map[string]any{"description": fmt.Sprint("new ", n)}
		}},
		{&c.list, scaleRuns, http.MethodGet, "insights/?limit=10", http.StatusOK, nil},
		{&c.listEndpoints, scaleRuns, http.MethodGet, "endpoints/?limit=10", http.StatusOK, nil},
		{&c.hit, 10 * scaleRuns, http.MethodPost, "endpoints/bench/run", http.StatusOK, func(int) any { return runBody }},
	} {
		took := make([]float64, m.times)
		for n := range took {
			var body any
			if m.body != nil {
				body = m.body(n)
			}
			began := time.Now()
			answer, err := client.Send(m.method, m.path, body)
			if err := checked(m.method+" "+m.path, answer, err, m.status); err != nil {
				return c, err
			}
			took[n] = time.Since(began).Seconds()
		}
		*m.into = time.Duration(median(took) * float64(time.Second))
	}
	memory, err := server.Rest()
	c.memory = memory.Server
	return c, err
}

const scaleInsight = `{"kind": "InsightVizNode", "source": {"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": "$pageview"}]}}`

func scaleEndpoint(n int) string { return "scale_" + strconv.Itoa(n) }

// fill writes the records as the server would. The measured project exists already.
func (a amounts) fill(ctx context.Context, path string, measured int64) (err error) {
	store, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	r, err := registry.Open(ctx, store, registry.Options{})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	projects := []int64{measured}
	for n := range a.projects - 1 {
		p, err := r.CreateProject(ctx, registry.NewProject{Name: fmt.Sprint("project ", n)}, time.Now())
		if err != nil {
			return errors.Join(err, r.Close())
		}
		projects = append(projects, p.ID)
	}
	if err := r.Close(); err != nil {
		return err
	}
	if store, err = sqlite.Open(ctx, path); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	// of returns the project of record n: every tenth is in the measured one.
	of := func(n int) int64 {
		if n%10 == 0 {
			return measured
		}
		return projects[n%len(projects)]
	}
	at := time.Now().UTC().Format(time.RFC3339)
	w := recordWriter{ctx: ctx, store: store}
	for n := range a.insights {
		w.put(of(n), registry.KindInsight, strconv.Itoa(1000+n), `{"short_id": "s%07d", "name": "insight %d", "query": %s, "filters": {}, "saved": true, "tags": [], "created_at": %q, "updated_at": %q, "last_modified_at": %q}`,
			n, n, scaleInsight, at, at, at)
	}
	for n := range a.endpoints {
		id := "e" + strconv.Itoa(n)
		w.put(of(n), registry.KindEndpoint, id, `{"id": %q, "name": %q, "active": true, "current_version": 1, "tags": [], "created_at": %q, "updated_at": %q}`, id, scaleEndpoint(n), at, at)
		w.put(of(n), registry.KindVersion, id+"/1", `{"id": "v%d", "number": 1, "query": {"kind": "HogQLQuery", "query": "select 1"}, "freshness_seconds": 86400, "active": true, "created_at": %q, "updated_at": %q}`, n, at, at)
	}
	for n := range a.keys {
		w.put(of(n), registry.KindKey, fmt.Sprintf("k%d", n), `{"id": "k%d", "user": %d, "kind": "personal", "hash": "%x", "label": "key %d", "mask": "phx_...abcd", "scopes": ["*"], "created_at": %q}`,
			n, 1000+n, registry.HashKey(strconv.Itoa(n)), n, at)
	}
	return w.flush()
}

// recordWriter writes records to a store, thousands at a time.
type recordWriter struct {
	ctx   context.Context // of one call of fill
	store registry.Store
	next  registry.Write
	err   error
}

func (w *recordWriter) put(project int64, kind registry.Kind, id, format string, args ...any) {
	rec := registry.Record{Project: project, Kind: kind, ID: id, Data: fmt.Appendf(nil, format, args...)}
	if w.err != nil {
		return
	}
	if rec.Unique, w.err = registry.UniqueKeys(&rec); w.err != nil {
		return
	}
	w.next.Put = append(w.next.Put, rec)
	if len(w.next.Put) == 5000 {
		w.err = w.flush()
	}
}

func (w *recordWriter) flush() error {
	if w.err != nil || len(w.next.Put) == 0 {
		return w.err
	}
	_, err := w.store.Write(w.ctx, &w.next)
	w.next = registry.Write{}
	return err
}
