package ingest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/delivery"
	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// ingesterTarget delivers to an ingester.
type ingesterTarget struct{ *ingest.Ingester }

func (i ingesterTarget) Deliver(ctx context.Context, project int64, records []record.Record) (ingest.Report, error) {
	return i.Ingester.Deliver(ctx, ingest.Options{Project: project, Now: now}, records)
}

// TestDeliverPastDeletion delivers to a project while a deletion has the turn of another one, whose events came first. Then the process ends. The next one finds
// the log as it is, or without what it says of projects that are behind, so that all of it is delivered again: each event is there once, and changed its person
// once, also one that ClickHouse refuses.
func TestDeliverPastDeletion(t *testing.T) {
	const uuids = `"timestamp":"2024-03-04T10:00:00Z","uuid":"0190f3c2-aaaa-7abc-8def-00000000000`
	batches := []string{
		`{"event":"a","distinct_id":"x",` + uuids + `1","properties":{"$set":{"n":1}}}` + "\n" +
			`{"event":"poison","distinct_id":"x",` + uuids + `2","properties":{"$set":{"bad":1}}}` + "\n" +
			`{"event":"a","distinct_id":"y",` + uuids + `3","properties":{"$set":{"k":"y"}}}` + "\n",
		`{"event":"$identify","distinct_id":"x",` + uuids + `4","properties":{"$anon_distinct_id":"y","$set":{"bad":2}}}` + "\n" +
			`{"event":"b","distinct_id":"y",` + uuids + `5","properties":{"$unset":["k"]}}` + "\n",
		`{"event":"c","distinct_id":"y",` + uuids + `6","properties":{"$set":{"n":2}}}` + "\n",
	}
	c := client(t)
	fresh := func(intents ingest.Intents) ingesterTarget {
		i := ingest.New(c)
		i.Intents = intents
		i.Poison("poison")
		return ingesterTarget{i}
	}
	undisturbed, whole := project(), fresh(ingest.IntentDir(t.TempDir()))
	for _, batch := range batches {
		records := captured(t, batch)
		for n := range records {
			records[n].Arrived = arrived
		}
		if _, err := whole.Deliver(t.Context(), undisturbed, records); err != nil {
			t.Fatal(err)
		}
	}
	want := withoutVersions(stateOf(t, c, undisturbed, "x", "y"))

	for _, again := range []bool{false, true} {
		held, other := project(), project()
		intents := ingest.IntentDir(t.TempDir())
		dir, killed := filepath.Join(t.TempDir(), "capture"), filepath.Join(t.TempDir(), "capture")
		j, err := journal.Open(dir, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		i := fresh(intents)
		inTurn, ended, giveUp := make(chan struct{}), make(chan error), make(chan struct{})
		go func() {
			ended <- i.Delete(t.Context(), ingest.Options{Project: held, Now: now}, ingest.Named{DistinctIDs: []string{"x"}}, true, func(context.Context, []ingest.Gone) error {
				close(inTurn)
				<-giveUp
				return errors.New("given up")
			}, nil)
		}()
		await(t, inTurn)
		d := delivery.New(j, zap.NewNop())
		d.Use(i)
		for _, batch := range batches {
			for _, project := range []int64{held, other} {
				if err := j.Append(t.Context(), journal.Entry{Project: project, Arrived: arrived, Events: 1, Data: []byte(batch)}); err != nil {
					t.Fatal(err)
				}
			}
			awaitDelivered(t, j, other)
		}
		if w := j.Waiting(held); w.Entries != 3 {
			t.Errorf("of the project whose turn is taken wait %+v", w)
		}
		if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Close(), j.Close()); err != nil {
			t.Fatal(err)
		}
		close(giveUp)
		if err := <-ended; err == nil {
			t.Fatal("the deletion did not give up")
		}
		if again {
			if err := os.Remove(filepath.Join(killed, "behind")); err != nil {
				t.Fatal(err)
			}
		}
		if j, err = journal.Open(killed, journal.Options{}); err != nil {
			t.Fatal(err)
		}
		if w := j.Waiting(other); (w.Entries > 0) != again {
			t.Errorf("after the restart %+v wait of the project that was delivered", w)
		}
		d = delivery.New(j, zap.NewNop())
		d.Use(fresh(intents))
		awaitDelivered(t, j, held)
		awaitDelivered(t, j, other)
		if err := errors.Join(d.Close(), j.Close()); err != nil {
			t.Fatal(err)
		}
		for name, project := range map[string]int64{"whose turn was taken": held, "that was delivered": other} {
			if diff := gocmp.Diff(want, withoutVersions(stateOf(t, c, project, "x", "y"))); diff != "" {
				t.Errorf("all again %t: the project %s (-want +got):\n%s", again, name, diff)
			}
		}
	}
}

func await(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it takes more than a minute")
	}
}

// awaitDelivered waits until nothing waits of a project.
func awaitDelivered(t *testing.T, j *journal.Journal, project int64) {
	t.Helper()
	for began := time.Now(); j.Waiting(project).Entries > 0; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("a minute later there is still %+v", j.Waiting(project))
		}
	}
}
