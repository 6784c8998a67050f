package deletions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

var ann = ingest.Named{DistinctIDs: []string{"ann"}}

const (
	people = "SELECT count() FROM (SELECT id FROM person GROUP BY id HAVING argMax(is_deleted, version) = 0)"
	events = "SELECT count() FROM events"
)

// TestRecountAfterwards: cohorts are recounted after the deletion has given back its place and the lock of the project's people.
func TestRecountAfterwards(t *testing.T) {
	s := start(t)
	placed, recounted := false, 0
	s.run(t, func(ctx context.Context, project int64, _ []int64) error {
		recounted++
		if placed {
			t.Error("the deletion still has its place")
			return nil
		}
		nobody := func(context.Context, []ingest.Gone) error { return nil }
		return s.warehouse.DeletePeople(ctx, s.options(project), ingest.Named{}, false, nobody, nobody) // waits for other writers
	})
	s.capture(t, time.Now())
	enter := func(context.Context) (func(), error) {
		placed = true
		return func() { placed = false }, nil
	}
	done, err := s.Delete(t.Context(), deletions.Request{Project: s.project, Who: ann, Enter: enter})
	if err != nil || len(done) != 1 || recounted != 1 {
		t.Errorf("%d deletions, counted %d times, %v", len(done), recounted, err)
	}
}

// TestRefused: a deletion that ClickHouse refuses leaves everything as it is.
func TestRefused(t *testing.T) {
	s := start(t)
	s.run(t, noRecount)
	s.capture(t, time.Now())
	conn := embeddedtest.Connect(t, engine.DSN())
	exec := func(sql string) {
		if err := conn.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
			t.Error(err)
		}
	}
	// Rows of a table with a projection can't be deleted.
	exec("ALTER TABLE events MODIFY SETTING deduplicate_merge_projection_mode = 'drop'")
	exec("ALTER TABLE events ADD PROJECTION other (SELECT event ORDER BY event)")
	defer exec("ALTER TABLE events RESET SETTING deduplicate_merge_projection_mode")
	defer exec("ALTER TABLE events DROP PROJECTION other")
	_, err := s.Delete(t.Context(), deletions.Request{Project: s.project, Who: ann, Events: true})
	if _, refused := errors.AsType[*deletions.RefusedError](err); !refused {
		t.Errorf("the deletion gave %v", err)
	}
	if got := slices.Concat(s.ask(t, people), s.ask(t, events)); !slices.Equal(got, []string{"[1]", "[1]"}) {
		t.Errorf("people and events are %v, want one of each", got)
	}
	if all := s.registry.Snapshot().Deletions(s.project); len(all) != 0 {
		t.Errorf("%d deletions are recorded", len(all))
	}
}

// TestTriedAgain: an unfinished deletion that is requested again is recorded once; a different one is recorded too.
func TestTriedAgain(t *testing.T) {
	s := start(t)
	s.run(t, noRecount)
	s.capture(t, time.Now())
	conn := embeddedtest.Connect(t, engine.DSN())
	exec := func(sql string) {
		if err := conn.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
			t.Error(err)
		}
	}
	request := deletions.Request{Project: s.project, Who: ann, Events: true}
	records := func(want int, when string) {
		t.Helper()
		if all := s.registry.Snapshot().Deletions(s.project); len(all) != want {
			t.Errorf("%s, %d deletions are recorded, want %d", when, len(all), want)
		}
	}
	exec("RENAME TABLE person_distinct_id_overrides TO away") // so that events can't be deleted
	if _, err := s.Delete(t.Context(), request); err == nil {
		t.Error("a deletion without a table is no error")
	}
	exec("RENAME TABLE away TO person_distinct_id_overrides")
	records(1, "after one request")
	request.Keep = true
	if _, err := s.Delete(t.Context(), request); err != nil {
		t.Error(err)
	}
	records(2, "after another one")
	request.Keep = false
	if done, err := s.Delete(t.Context(), request); err != nil || len(done) != 1 {
		t.Errorf("%d deletions, %v", len(done), err)
	}
	records(2, "at the end")
	if got := slices.Concat(s.ask(t, people), s.ask(t, events)); !slices.Equal(got, []string{"[0]", "[0]"}) {
		t.Errorf("people and events are %v, want none", got)
	}
	for _, one := range s.registry.Snapshot().PendingDeletions(s.project) {
		if one.HiddenAt.IsZero() {
			t.Errorf("the deletion %+v is not complete", one)
		}
	}
}

// TestCompletion: an aborted deletion is completed for the persons that existed when it was requested. Persons that came back since stay.
func TestCompletion(t *testing.T) {
	for _, buried := range []bool{false, true} {
		s := start(t)
		asked := time.Now().Add(-time.Hour)
		s.capture(t, asked.Add(-time.Minute))
		record := func(ctx context.Context, list []ingest.Gone) error {
			d := registry.Deletion{Person: list[0].ID.String(), Gone: true, Events: true, Version: list[0].Version}
			for _, n := range list[0].Names {
				d.Names = append(d.Names, registry.DeletedName(n))
			}
			_, err := s.registry.AddDeletions(ctx, s.project, []registry.Deletion{d}, asked)
			if err == nil && !buried {
				err = errBroken
			}
			return err
		}
		broken := func(context.Context, []ingest.Gone) error { return errBroken }
		if err := s.warehouse.DeletePeople(t.Context(), s.options(s.project), ann, true, record, broken); !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
		s.capture(t, time.Now())
		s.run(t, noRecount)
		for s.registry.Snapshot().Deletions(s.project)[0].HiddenAt.IsZero() {
			select {
			case <-t.Context().Done():
				t.Fatal("the test ends")
			case <-time.After(10 * time.Millisecond):
			}
		}
		want := []string{"[0]", "[1]"}
		if buried {
			want[0] = "[1]"
		}
		if got := slices.Concat(s.ask(t, people), s.ask(t, events)); !slices.Equal(got, want) {
			t.Errorf("buried before: %t: people and events are %v, want %v", buried, got, want)
		}
	}
}

// TestForgetsMeanwhile: while a slow deletion is being completed, what other servers have deleted is forgotten.
func TestForgetsMeanwhile(t *testing.T) {
	s := start(t)
	s.capture(t, time.Now())
	asked := []registry.Deletion{{Person: uuid.NewString(), Gone: true, Version: 1}}
	if _, err := s.registry.AddDeletions(t.Context(), s.project, asked, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	completing, other := make(chan struct{}), make(chan struct{})
	s.run(t, func(context.Context, int64, []int64) error { // part of the completion
		close(completing)
		<-other
		return nil
	})
	<-completing
	before := s.forgotten.Load()
	added, err := s.registry.AddDeletions(t.Context(), s.project, asked, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.registry.HideDeletions(t.Context(), s.project, added, time.Now()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); s.forgotten.Load() == before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("nothing is forgotten while a deletion is completed")
			break
		}
	}
	close(other)
}

// TestForgetsWhateverTheClock: what another server has deleted is forgotten, even if its clock is behind that of a server that deleted earlier.
func TestForgetsWhateverTheClock(t *testing.T) {
	s := start(t)
	s.run(t, noRecount)
	for _, ahead := range []time.Duration{time.Hour, 0, time.Minute} {
		before, now := s.forgotten.Load(), time.Now().Add(ahead)
		added, err := s.registry.AddDeletions(t.Context(), s.project, []registry.Deletion{{Person: uuid.NewString(), Gone: true, Version: 1}}, now)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.registry.HideDeletions(t.Context(), s.project, added, now); err != nil {
			t.Fatal(err)
		}
		what := fmt.Sprintf("something is forgotten of what a server deleted whose clock is %s ahead", ahead)
		eventually.Is(t, what, func() bool { return s.forgotten.Load() != before })
	}
}

var errBroken = errors.New("broken off")

// TestPanics: deletions of a project that panic hold up no other project.
func TestPanics(t *testing.T) {
	s := start(t)
	broken := s.project
	projects.Add(1)
	other, err := s.registry.CreateProject(t.Context(), registry.NewProject{Name: "p", Timezone: "UTC"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, project := range []int64{broken, other.ID} {
		hidden, err := s.registry.AddDeletions(t.Context(), project, []registry.Deletion{{Person: uuid.NewString(), Gone: true, Version: 1}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.registry.HideDeletions(t.Context(), project, hidden, time.Now()); err != nil {
			t.Fatal(err)
		}
		aborted := []registry.Deletion{{Person: uuid.NewString(), Gone: true, Version: 1}}
		if _, err := s.registry.AddDeletions(t.Context(), project, aborted, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	var forgotten atomic.Int64
	d := deletions.New(deletions.Config{
		Registry: s.registry, Shards: warehouse.Only(s.warehouse), Logger: zap.NewNop(), Recount: noRecount,
		Options: func(project int64) ingest.Options {
			if project == broken {
				panic("broken")
			}
			return s.options(project)
		},
		Forget: func(project int64, _ time.Time) {
			if project == broken {
				forgotten.Add(1)
				panic("broken")
			}
		},
		EraseCaptured: func(context.Context, string, func(int64, string) bool) error { panic("broken") },
	})
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if n := forgotten.Load(); n != 1 {
			t.Errorf("what panics is forgotten %d times", n)
		}
	}()
	if _, err := d.EraseNow(t.Context()); err == nil {
		t.Error("an erasure that panics ends without an error")
	}
	complete := func() bool {
		return forgotten.Load() > 0 && !slices.ContainsFunc(s.registry.Snapshot().Deletions(other.ID), func(one *registry.Deletion) bool { return one.HiddenAt.IsZero() })
	}
	eventually.Is(t, "the deletion in another project is completed", complete)
}
