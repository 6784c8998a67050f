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
	hitSeconds    = 30 // also the number of times that the result goes stale
	// aroundStale is the longest time between a hit and a stale result at which the hit counts as around going stale. A refresh takes longer.
	aroundStale = 100 * time.Millisecond
)

// slowSQL is slow enough that a hit that waits for it is noticeable.
const slowSQL = "select max(cityHash64(toString(number))) as n from numbers(3000000)"

// hit is a response under load: when it was due, how long after that it came, and whether it was stale.
type hit struct {
	due, took time.Duration
	stale     bool
	err       error
}

// staleHits sends hits for one key at a fixed rate, without waiting for earlier responses, while the result goes stale once
// a second and is refreshed. Hits at that moment must not take longer.
func staleHits(folder string) (goals []goal, err error) {
	client, err := open(folder, "stale", unlimited)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Server.Stop()) }()
	answer, err := client.Send(http.MethodPost, "endpoints/", map[string]any{
		"name": "ageing", "query": map[string]any{"kind": "HogQLQuery", "query": slowSQL}, "data_freshness_seconds": 1,
	})
	if err := checked("publishing", answer, err, http.StatusCreated); err != nil {
		return nil, err
	}
	answer, err = client.Send(http.MethodPost, "endpoints/ageing/run", runBody)
	if err := checked("running", answer, err, http.StatusOK); err != nil {
		return nil, err
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
		return nil, fmt.Errorf("too few hits: %d around going stale, %d at other times", len(around), len(apart))
	}
	fmt.Printf("Hits at %d per second on a result that goes stale every second, milliseconds\n\n", hitsPerSecond)
	fmt.Printf("%-28s %10s %10s %10s\n", "", "hits", "median", "p99")
	a, b := percentile(around, 99), percentile(apart, 99)
	fmt.Printf("%-28s %10d %10.2f %10.2f\n%-28s %10d %10.2f %10.2f\n\n", "around going stale", len(around), percentile(around, 50), a,
		"at other times", len(apart), percentile(apart, 50), b)
	return append(goals, atMost("p99 of hits around going stale", "p99 of the other hits", 1.3, a/b)), nil
}

// sendHits sends the load and returns the hits in the order in which they were due.
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
		h.err = fmt.Errorf("not a hit: %d %s %s", answer.Status, status, answer.Raw)
	}
}

// staleMoments returns the times when stale responses were due, in order.
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
