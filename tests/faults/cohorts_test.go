package faults_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

const (
	// cohortKills is how often the server or its engine is killed.
	cohortKills = 8
	// cohortPeople is the number of people in the project; the cohort has a varying part of them.
	cohortPeople = 30_000
)

// cohortOf returns a cohort of the people whose property half has one of some values, as a body for the API.
func cohortOf(values ...string) map[string]any {
	leaf := map[string]any{"type": "person", "key": "half", "operator": "exact", "value": values}
	return map[string]any{"filters": map[string]any{"properties": map[string]any{"type": "AND", "values": []any{leaf}}}}
}

// TestKilledDuringCalculations alternately kills the server and its engine while a cohort is computed: queries see its members from before or after, never
// in between, and in the end the requested ones.
func TestKilledDuringCalculations(t *testing.T) {
	server := harness.Start(t)
	id, _ := server.Project(t, "cohorts")
	c := server.Client(id, server.Key(t, id, "query:read,person:read,cohort:read,cohort:write", "personal"))
	var lines strings.Builder
	for n := range cohortPeople { // a third is in a, the others in b
		half := "b"
		if n%3 == 0 {
			half = "a"
		}
		fmt.Fprintf(&lines, `{"type":"person","distinct_ids":["p%d"],"properties":{"half":"%s"}}`+"\n", n, half)
	}
	server.MustCommand(t, nil, strings.NewReader(lines.String()), "import", "--project", strconv.FormatInt(id, 10), "-")
	made := c.Do(t, http.MethodPost, "cohorts/", cohortOf("a"))
	cohort, ok := made.Body["id"].(float64)
	if made.Status != http.StatusCreated || !ok {
		t.Fatalf("creating a cohort: %d %s", made.Status, made.Raw)
	}
	path := fmt.Sprintf("cohorts/%d/", int64(cohort))
	const inA, inB = cohortPeople / 3, cohortPeople - cohortPeople/3
	settled := func(want float64) {
		t.Helper()
		harness.Eventually(t, 2*time.Minute, func() error {
			answer, err := c.Send(http.MethodGet, path, nil)
			if err != nil {
				return err
			}
			if answer.Body["is_calculating"] != false || answer.Body["count"] != want || answer.Body["errors_calculating"] != 0.0 {
				return fmt.Errorf("%d %s, want %v members", answer.Status, answer.Raw, want)
			}
			return nil
		})
	}
	settled(inA)
	read := func() (float64, bool) {
		answer, err := c.Send(http.MethodPost, "query/", map[string]any{"refresh": "force_blocking", "query": map[string]any{
			"kind": "HogQLQuery", "query": fmt.Sprintf("select count() from persons where id in cohort %d", int64(cohort)),
		}})
		if err != nil || answer.Status != http.StatusOK {
			return 0, false // the server or its engine is down
		}
		n, _ := answer.Body["results"].([]any)[0].([]any)[0].(float64)
		return n, true
	}
	for round := range cohortKills {
		want, half := float64(inB), "b"
		if round%2 == 1 {
			want, half = inA, "a"
		}
		stop := make(chan struct{})
		var readers sync.WaitGroup
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if n, ok := read(); ok && n != inA && n != inB {
					t.Errorf("a query sees %v members of the cohort, want %d or %d", n, inA, inB)
				}
			}
		})
		if answer := c.Do(t, http.MethodPatch, path, cohortOf(half)); answer.Status != http.StatusOK {
			t.Fatalf("changing the cohort: %d %s", answer.Status, answer.Raw)
		}
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		if round < cohortKills/2 {
			harness.KillChildren(t, server.PID(), "engine")
		} else {
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := server.Run(); err != nil {
				t.Fatal(err)
			}
		}
		settled(want)
		close(stop)
		readers.Wait()
		harness.Eventually(t, time.Minute, func() error {
			if n, ok := read(); !ok || n != want {
				return fmt.Errorf("a query sees %v members, want %v", n, want)
			}
			return nil
		})
	}
}
