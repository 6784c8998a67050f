package ingest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// TestKnownOnAllDays delivers events of the first and last days that events can have, and of those around the ends of ClickHouse's Date, twice.
func TestKnownOnAllDays(t *testing.T) {
	c, options := client(t), ingest.Options{Project: project()}
	days := []string{
		"1900-01-01", "1960-06-01", "1969-12-30", "1969-12-31", "1970-01-01", "1970-01-02", "2024-02-29", "2149-06-05", "2149-06-06", "2149-06-07",
		"2149-06-08", "2149-06-30", "2149-07-01", "2200-01-01", "2261-12-31",
	}
	var lines strings.Builder
	for _, day := range days {
		fmt.Fprintf(&lines, `{"event":"a","distinct_id":"x","timestamp":"%sT12:00:00Z"}`+"\n", day)
	}
	if report := load(t, c, options, lines.String()); report.Events != len(days) || report.Duplicates != 0 {
		t.Errorf("the first time: %+v", report)
	}
	if report := load(t, c, options, lines.String()); report.Events != len(days) || report.Duplicates != len(days) {
		t.Errorf("the second time: %+v", report)
	}
	if diff := gocmp.Diff([]string{fmt.Sprintf("[%d]", len(days))}, ask(t, c, options.Project, "SELECT count() FROM events")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestDeliverAlone delivers events, many of them several times, by an ingester that does not look up what is surely new. Meanwhile
// batches break off, others are imported, and another process writes: each event is there once.
func TestDeliverAlone(t *testing.T) {
	c, p := client(t), project()
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	failed := errors.New("the insert breaks off")
	i, other := ingest.New(c), ingest.New(c)
	i.Alone, other.Alone = true, true
	i.Intents, other.Intents = ingest.IntentDir(t.TempDir()), ingest.IntentDir(t.TempDir())
	fails := false
	i.Before(func(string) error {
		if fails {
			fails = false
			return failed
		}
		return nil
	})
	deliver := func(i *ingest.Ingester, options ingest.Options, batch []record.Record) {
		t.Helper()
		if _, err := i.Deliver(t.Context(), options, slices.Clone(batch)); err != nil {
			t.Fatal(err)
		}
	}
	var sent []string
	line := func() string {
		if len(sent) > 0 && r.IntN(3) == 0 {
			return sent[r.IntN(len(sent))]
		}
		at := now.Add(time.Duration(r.IntN(6*24*60)-3*24*60) * time.Minute)
		one := fmt.Sprintf(`{"event":"a","distinct_id":"u%d","timestamp":%q,"uuid":%q}`, r.IntN(9), at.Format(time.RFC3339), uuid.New())
		sent = append(sent, one)
		return one
	}
	withoutLookup := 0
	for n := range 60 {
		var lines []string
		for range 1 + r.IntN(20) {
			lines = append(lines, line())
		}
		batch := captured(t, strings.Join(lines, "\n"))
		options := ingest.Options{Project: p, Now: now.Add(time.Duration(n) * time.Hour)}
		switch r.IntN(8) {
		case 0:
			fails = true
			if _, err := i.Deliver(t.Context(), options, slices.Clone(batch)); err != nil && !errors.Is(err, failed) {
				t.Fatal(err)
			}
			fails = false
			deliver(i, options, batch)
		case 1:
			if _, err := i.Import(t.Context(), options, ingesttest.Lines(lines...)); err != nil {
				t.Fatal(err)
			}
		case 2:
			other.Forget(p)
			deliver(other, options, batch)
			i.Forget(p)
		default:
			deliver(i, options, batch)
		}
		if i.SurelyNew(p, uuid.New(), options.Now) {
			withoutLookup++
		}
	}
	want := fmt.Sprintf("[%d, %d]", len(sent), len(sent))
	if got := ask(t, c, p, "SELECT count(), uniqExact(uuid) FROM events"); got[0] != want {
		t.Errorf("%d events were sent; there are %s", len(sent), got)
	}
	if withoutLookup < 30 {
		t.Errorf("events were written without a lookup after %d batches only", withoutLookup)
	}
}
