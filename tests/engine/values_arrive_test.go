package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/intake"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// server is what executes queries, and takes in events, as a server does that has ClickHouse to itself.
type server struct {
	t       *testing.T
	exec    *execution.Executor
	intake  *intake.Intake
	reg     *registry.Registry
	wh      *warehouse.Warehouse
	project *registry.Project
}

// newServer opens a server on a registry.
func newServer(t *testing.T, path string) *server {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	// A poll that is this rare finds nothing in time: the server has to ask.
	reg, err := registry.Open(t.Context(), store, registry.Options{Poll: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	results, err := cache.New(cache.Config{MaxBytes: 16 << 20, Stale: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	wh, err := warehouse.Open(clickhouse.Config{DSN: dsn, Embedded: true}, reg, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range []error{wh.Close(), reg.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
		results.Close()
	})
	rate, err := registry.ParseRate("100000/s")
	if err != nil {
		t.Fatal(err)
	}
	shards, places := warehouse.Only(wh), admission.New(admission.Limits{Places: 1, Project: 1, Queue: 10})
	taking := &intake.Intake{Registry: reg, Shards: shards, Places: places, Cache: results, Logger: zap.NewNop()}
	return &server{t: t, reg: reg, wh: wh, intake: taking, exec: &execution.Executor{
		Compiler: &execution.Compiler{Shards: shards, Registry: reg}, Settings: execution.Settings{QueryFresh: time.Minute},
		Cache: results, Places: places, Runs: execution.NewRuns(), Metrics: execution.NewMetrics(), Names: new(execution.Sightings), Limits: execution.NewLimiter(rate),
		Retain: func() (func(), bool) { return func() {}, true }, Reports: execution.Reports{Run: func(cache.Key, error) {}},
	}}
}

// options are those of what comes in now.
func (s *server) options() ingest.Options { return s.intake.Options(s.reg.Snapshot(), s.project.ID) }

// event is a line of an event with a property x.
func event(value string) string {
	return fmt.Sprintf(`{"event":"e","distinct_id":"u","uuid":%q,"timestamp":"2024-03-01T00:00:00Z","properties":{"x":%s}}`, uuid.New(), value)
}

// deliver takes in an event with a property x.
func (s *server) deliver(value string) {
	s.t.Helper()
	r, err := new(record.Parser).Parse([]byte(event(value)))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Arrived = time.Now()
	if report, err := s.intake.Deliver(s.t.Context(), s.project.ID, []record.Record{r}); err != nil || report.Bad > 0 {
		s.t.Fatal(err, report.BadLines)
	}
}

// ask computes the values of x, in order.
func (s *server) ask() (rows []string, sql string, err error) {
	node := &query.HogQL{Query: "select properties.x as x from events order by toString(x)"}
	q := &execution.Query{
		Key: cache.KeyParts{Project: s.project.ID, Query: uuid.NewString()}.Key(), Node: node, Rows: compiler.QueryRoute, Text: node.Query,
	}
	caller := &execution.Caller{Project: s.project, Snapshot: s.reg.Snapshot(), Start: time.Now()}
	got, err := s.exec.Answer(s.t.Context(), caller, q, &execution.Freshness{Fresh: time.Minute})
	if err != nil {
		return nil, "", err
	}
	for row := range got.Answer.Entry.Result.Rows() {
		var cells []any
		if err := json.Unmarshal(row, &cells); err != nil {
			return nil, "", err
		}
		rows = append(rows, fmt.Sprint(cells[0]))
	}
	details, _ := got.Answer.Entry.Meta.(*execution.Details)
	return rows, details.SQL, nil
}

// open makes a project whose number no other test has.
func (s *server) open(number int64) {
	s.t.Helper()
	for s.project == nil || s.project.ID < number {
		p, err := s.reg.CreateProject(s.t.Context(), registry.NewProject{Name: "p"}, time.Now())
		if err != nil {
			s.t.Fatal(err)
		}
		s.project = p
	}
}

// TestValuesOfALateImport: an import that learns no types, and began before a property had one, brings it a value of another kind than it
// has had: queries find it.
func TestValuesOfALateImport(t *testing.T) {
	s := newServer(t, sqlitetest.Path(t))
	s.open(arrivals + 1)
	began := s.options()
	began.LearnTypes = false
	s.deliver(`"text"`)
	if report, err := s.wh.Import(t.Context(), s.exec.Places, began, ingesttest.Lines(event("5"))); err != nil || report.Bad > 0 {
		t.Fatal(err, report.BadLines)
	}
	if rows, sql, err := s.ask(); err != nil || !slices.Equal(rows, []string{"5", "text"}) {
		t.Errorf("%v %v\n%s", rows, err, sql)
	}
	if !s.reg.Snapshot().Project(s.project.ID).ValuesKnown {
		t.Error("no more kinds are noted")
	}
}

// TestValuesArriveMeanwhile: an event with a value of a new kind that comes in after a query was compiled, and before it runs, is in the
// answer, whether this server takes it in or another one of the same registry; whether all values were noted, or the first ones were found in the
// tables.
func TestValuesArriveMeanwhile(t *testing.T) {
	t.Run("noted", func(t *testing.T) {
		arriveMeanwhile(t, arrivals, "text", func(s *server) { s.deliver(`"text"`) })
	})
	t.Run("the first", func(t *testing.T) {
		arriveMeanwhile(t, arrivals+9, "<nil>", func(s *server) {
			s.deliver(`null`)
			if _, sql, err := s.ask(); err != nil || strings.Contains(sql, "dynamicElement") {
				t.Errorf("a property that has had no values: %v\n%s", err, sql)
			}
		})
	})
	t.Run("found", func(t *testing.T) {
		arriveMeanwhile(t, arrivals+2, "text", func(s *server) {
			s.deliverUnnoted(`"text"`)
			if _, sql, err := s.ask(); err != nil || !strings.Contains(sql, ".^") {
				t.Errorf("before the probe: %v\n%s", err, sql)
			}
			s.probe()
		})
	})
}

// arriveMeanwhile delivers values to a project with one event, which has a first value.
func arriveMeanwhile(t *testing.T, number int64, first string, begin func(*server)) {
	t.Helper()
	path := sqlitetest.Path(t)
	one, two := newServer(t, path), newServer(t, path)
	one.open(number)
	begin(one)
	two.project = one.project
	if err := two.reg.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{first}
	for n, in := range []struct {
		server      *server
		value, text string
		plain       bool // the string's own sub-column is all that the query reads in the end
	}{
		{one, `"text 2"`, "text 2", true},
		{one, `5`, "5", false},
		{two, `{"a":1}`, `{"a":1}`, false},
		{two, `[1]`, `[1]`, false},
		{one, `true`, `true`, false},
	} {
		// The only place is taken: the query is compiled, and waits.
		place, err := one.exec.Places.Enter(t.Context(), admission.Request{Project: one.project.ID, Awaited: admission.Awaited, Uncounted: true})
		if err != nil {
			t.Fatal(err)
		}
		type answer struct {
			rows []string
			sql  string
			err  error
		}
		answered := make(chan answer, 1)
		go func() {
			var a answer
			a.rows, a.sql, a.err = one.ask()
			answered <- a
		}()
		for waiting := 0; waiting == 0; _, waiting = one.exec.Places.Of(one.project.ID) {
			select {
			case a := <-answered:
				t.Fatal("it did not wait", a)
			case <-time.After(time.Millisecond):
			}
		}
		in.server.deliver(in.value)
		place.Leave()
		got := <-answered
		if got.err != nil {
			t.Fatal(got.err)
		}
		want = append(want, in.text)
		if missing := missingOf(want, got.rows); len(missing) > 0 || len(got.rows) != len(want) {
			t.Errorf("step %d: %v, want %v", n, got.rows, want)
		}
		if plain := !strings.Contains(got.sql, "dynamicElement"); plain != in.plain {
			t.Errorf("step %d: the query was\n%s", n, got.sql)
		}
	}
	if rows, sql, err := one.ask(); err != nil || len(rows) != len(want) || !strings.Contains(sql, ".^") {
		t.Errorf("afterwards: %v %v\n%s", rows, err, sql)
	}
}

// arrivals is the number of the first project of these tests; they have ten.
const arrivals = 211

func missingOf(want, got []string) (missing []string) {
	there := map[string]int{}
	for _, row := range got {
		there[row]++
	}
	for _, row := range want {
		if there[row]--; there[row] < 0 {
			missing = append(missing, row)
		}
	}
	return missing
}
