package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// inserts notes what is inserted together: the keys of the rows.
type inserts struct {
	mu    sync.Mutex
	all   []string
	takes time.Duration
	err   error
}

func (i *inserts) run(ctx context.Context, blocks []*gathered) error {
	var keys []string
	for _, b := range blocks {
		for _, r := range b.rows {
			keys = append(keys, r.key)
		}
	}
	slices.Sort(keys)
	select {
	case <-time.After(i.takes):
	case <-ctx.Done():
		keys = append(keys, "canceled")
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.all = append(i.all, blocks[0].table+" "+strings.Join(keys, " "))
	return i.err
}

func (i *inserts) check(t *testing.T, want ...string) {
	t.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	slices.Sort(i.all)
	slices.Sort(want)
	if diff := cmp.Diff(want, i.all); diff != "" {
		t.Errorf("inserts (-want +got):\n%s", diff)
	}
	i.all = nil
}

// TestGathering inserts blocks of several deliveries: together when all of them wait, without those that take their time.
func TestGathering(t *testing.T) {
	layout := map[string]table{"a": {"x": "String"}, "b": {"x": "String"}}
	other := map[string]table{"a": {"x": "UUID"}}
	synctest.Test(t, func(t *testing.T) {
		ran := &inserts{takes: 10 * time.Millisecond}
		g := &gathering{run: ran.run}
		one := func(ctx context.Context, layout map[string]table, table, key string, size int) error {
			return g.insert(ctx, &store{layout: layout}, block{table: table, columns: []string{"x"}, rows: []row{{key: key, values: []any{strings.Repeat("x", size)}}}})
		}
		// delivery inserts into tables one after another, after a pause.
		var all sync.WaitGroup
		start := make(chan struct{}) // so that none begins before all have entered
		delivery := func(key string, after time.Duration, tables ...string) {
			leave, start := g.enter(), start
			all.Go(func() {
				defer leave()
				<-start
				time.Sleep(after)
				for _, table := range tables {
					if err := one(t.Context(), layout, table, key, 1); err != nil {
						t.Errorf("%s into %s: %v", key, table, err)
					}
				}
			})
		}
		began := time.Now()
		took := func(want time.Duration) {
			t.Helper()
			close(start)
			all.Wait()
			start = make(chan struct{})
			if got := time.Since(began); got != want {
				t.Errorf("it takes %s, want %s", got, want)
			}
			began = time.Now()
		}

		delivery("alone", 0, "a", "b")
		took(20 * time.Millisecond)
		ran.check(t, "a alone", "b alone")

		delivery("1", 0, "a", "b")
		delivery("2", 50*time.Millisecond, "a", "b")
		delivery("3", 20*time.Millisecond, "b")
		took(70 * time.Millisecond)
		ran.check(t, "a 1 2", "b 3", "b 1 2")

		delivery("quick", 0, "a")
		delivery("slow", 10*gatherFor, "a")
		took(10*gatherFor + 10*time.Millisecond)
		ran.check(t, "a quick", "a slow")

		delivery("quick", 0, "a") // a delivery that ends without an insert keeps nobody waiting
		delivery("nothing", gatherFor/2)
		took(gatherFor/2 + 10*time.Millisecond)
		ran.check(t, "a quick")

		leave := []func(){g.enter(), g.enter(), g.enter(), g.enter()}
		all.Go(func() { _ = one(t.Context(), layout, "a", "large", maxBlock) })
		all.Go(func() { _ = one(t.Context(), layout, "a", "larger", maxBlock) })
		all.Go(func() { _ = one(t.Context(), layout, "b", "small", 1) })
		all.Go(func() { _ = one(t.Context(), other, "a", "differs", 1) })
		all.Wait()
		ran.check(t, "a large", "a larger", "b small", "a differs")
		for _, leave := range leave {
			leave()
		}
	})
}

// TestGatheringFails has inserts fail, and deliveries end while they wait.
func TestGatheringFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := &inserts{takes: 10 * time.Millisecond}
		g := &gathering{run: ran.run}
		both := func(first, second context.Context) (errs [2]error) {
			defer g.enter()()
			defer g.enter()()
			var all sync.WaitGroup
			for n, ctx := range []context.Context{first, second} {
				all.Go(func() {
					errs[n] = g.insert(ctx, &store{}, block{table: "a", rows: []row{{key: string(rune('1' + n))}}})
				})
			}
			all.Wait()
			return errs
		}
		ctx := t.Context()
		refused := &clickhouse.Error{Kind: clickhouse.UserError, Code: 117}
		ran.err = refused
		if errs := both(ctx, ctx); errs != [2]error{errAlone, errAlone} {
			t.Errorf("refused together: %v", errs)
		}
		if err := g.insert(ctx, &store{}, block{table: "a", rows: []row{{key: "alone"}}}); !errors.Is(err, refused) {
			t.Errorf("refused alone: %v", err)
		}
		ran.err = &clickhouse.Error{Kind: clickhouse.TooLarge}
		if err := g.share(ctx, &gathered{asked: new(question), store: &store{}}); err != errAlone { //nolint:errorlint // it is never wrapped
			t.Errorf("a question that finds too much: %v", err)
		}
		if err := g.insert(ctx, &store{}, block{table: "a", rows: []row{{key: "alone"}}}); !errors.Is(err, ran.err) {
			t.Errorf("a block that is too large: %v", err)
		}
		ran.err = errors.New("ClickHouse is unavailable")
		if errs := both(ctx, ctx); errs != [2]error{ran.err, ran.err} {
			t.Errorf("away: %v", errs)
		}
		ran.err, ran.all = nil, nil
		ends := func(after time.Duration) context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(after, cancel)
			return ctx
		}
		if errs := both(ends(5*time.Millisecond), ctx); !errors.Is(errs[0], context.Canceled) || errs[1] != nil {
			t.Errorf("one ends: %v", errs)
		}
		ran.check(t, "a 1 2")
		if errs := both(ends(5*time.Millisecond), ends(6*time.Millisecond)); !errors.Is(errs[0], context.Canceled) || !errors.Is(errs[1], context.Canceled) {
			t.Errorf("both end: %v", errs)
		}
		time.Sleep(time.Second)
		ran.check(t, "a 1 2 canceled")

		leave := g.enter() // it ends before anything is inserted
		gone := g.enter()
		if err := g.insert(ends(time.Millisecond), &store{}, block{table: "a", rows: []row{{key: "gone"}}}); !errors.Is(err, context.Canceled) {
			t.Errorf("it ends while it waits: %v", err)
		}
		gone()
		if err := g.insert(ctx, &store{}, block{table: "a", rows: []row{{key: "stays"}}}); err != nil {
			t.Error(err)
		}
		leave()
		ran.check(t, "a stays")
		if g.active != 0 || g.inserting != 0 || len(g.waiting) != 0 {
			t.Errorf("left over: %+v", g)
		}
	})
}

// TestGatheringPanics: a panic of what is done for several deliveries is one of the delivery that causes it.
func TestGatheringPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gathering{run: func(_ context.Context, blocks []*gathered) error {
			for _, one := range blocks {
				if one.rows[0].key == "bad" {
					panic("a defect")
				}
			}
			return nil
		}}
		insert := func(key string) (outcome any) {
			defer func() {
				if crash := recover(); crash != nil {
					outcome = strings.HasPrefix(fmt.Sprint(crash), "a defect\n")
				}
			}()
			return g.insert(t.Context(), &store{}, block{table: "a", rows: []row{{key: key}}})
		}
		leave, leaveToo := g.enter(), g.enter()
		var good, bad any
		var all sync.WaitGroup
		all.Go(func() { good = insert("good") })
		all.Go(func() { bad = insert("bad") })
		all.Wait()
		if good != errAlone || bad != errAlone { //nolint:errorlint // it is never wrapped
			t.Errorf("together: %v and %v", good, bad)
		}
		leave()
		leaveToo()
		if good, bad = insert("good"), insert("bad"); good != nil || bad != true {
			t.Errorf("alone: %v and %v", good, bad)
		}
	})
}
