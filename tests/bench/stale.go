package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

const (
	hitsPerSecond = 400
	hitSeconds    = 30 // as many times does the answer go stale
	// aroundStale is how near to a stale answer a hit has to be to be counted as around going stale: refreshing takes longer.
	aroundStale = 100 * time.Millisecond
)

// slowSQL takes ClickHouse long enough that a hit which waited for it would show.
const slowSQL = "select max(cityHash64(toString(number))) as n from numbers(3000000)"

// hit is one answer under load: when it was due, how long after that it was there, and whether it was stale.
type hit struct {
	due, took time.Duration
	stale     bool
	err       error
}

// staleHits sends hits on one key at a fixed rate, whether the ones before were answered or not, while the answer goes stale once
// a second and is refreshed: who hits it then must not wait longer.
func staleHits(folder string) (goals []goal, err error) {
	client, err := open(folder, "stale", unlimited)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Server.Stop()) }()
	answer, err := client.Send(http.MethodPost, "endpoints/", map[string]any{
		"name": "ageing", "query": map[string]any{"kind": "HogQLQuery", "query": slowSQL}, "data_freshness_seconds": 1,
	})
	if err != nil || answer.Status != http.StatusCreated {
		return nil, fmt.Errorf("publishing: %w: %s", err, answer.Raw)
	}
	if answer, err = client.Send(http.MethodPost, "endpoints/ageing/run", runBody); err != nil || answer.Status != http.StatusOK {
		return nil, fmt.Errorf("running: %w: %s", err, answer.Raw)
	}
	hits := sendHits(client)
	var around, apart []float64 // milliseconds
	stale := staleMoments(hits)
	for _, h := range hits {
		if h.err != nil {
			return nil, h.err
		}
		i, _ := slices.BinarySearch(stale, h.due-aroundStale)
		if i < len(stale) && stale[i] <= h.due+aroundStale {
			around = append(around, h.took.Seconds()*1000)
		} else {
			apart = append(apart, h.took.Seconds()*1000)
		}
	}
	if len(around) < hitSeconds*10 || len(apart) < hitSeconds*10 {
		return nil, fmt.Errorf("%d hits around going stale and %d apart from it tell nothing", len(around), len(apart))
	}
	fmt.Printf("Hits at %d a second on an answer that goes stale every second, milliseconds\n\n", hitsPerSecond)
	fmt.Printf("%-28s %10s %10s %10s\n", "", "hits", "median", "p99")
	a, b := percentile(around, 99), percentile(apart, 99)
	fmt.Printf("%-28s %10d %10.2f %10.2f\n%-28s %10d %10.2f %10.2f\n\n", "around going stale", len(around), percentile(around, 50), a,
		"at other times", len(apart), percentile(apart, 50), b)
	return append(goals, goal{
		what: "p99 of hits around going stale", against: "p99 of the other hits", goal: "about 1", measured: fmt.Sprintf("%.2f (%.2f and %.2f ms)", a/b, a, b),
	}), nil
}

// sendHits sends the load, in the order of when each hit was due.
func sendHits(client *harness.Client) []hit {
	hits := make([]hit, hitsPerSecond*hitSeconds)
	began := time.Now()
	next := time.NewTicker(time.Second / hitsPerSecond)
	defer next.Stop()
	var wait sync.WaitGroup
	for i := range hits {
		hits[i].due = time.Second * time.Duration(i) / hitsPerSecond
		for time.Since(began) < hits[i].due {
			<-next.C
		}
		wait.Go(func() { hits[i].send(client, began) })
	}
	wait.Wait()
	return hits
}

func (h *hit) send(client *harness.Client, began time.Time) {
	answer, err := client.Send(http.MethodPost, "endpoints/ageing/run", runBody)
	h.took = time.Since(began) - h.due
	status := answer.Header.Get("Cache-Status")
	h.stale = strings.HasSuffix(status, "detail=revalidating")
	switch {
	case err != nil:
		h.err = err
	case !strings.Contains(status, "; hit;"):
		h.err = fmt.Errorf("no hit: %d %s %s", answer.Status, status, answer.Raw)
	}
}

// staleMoments are when stale answers were due, in order.
func staleMoments(hits []hit) (due []time.Duration) {
	for _, h := range hits {
		if h.stale {
			due = append(due, h.due)
		}
	}
	return due
}

func percentile(values []float64, p int) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}
