package warehouse

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// server is a ClickHouse with parts of the events.
type server struct {
	parts   []clickhouse.Part
	digests []clickhouse.Digest // of each project
	columns string              // those of the events
	failure error               // of Probeable
	asked   int                 // how often Probeable was
	read    int                 // how often Digests was
	front   clickhouse.Host
}

func (s *server) Front() clickhouse.Host { return s.front }

func (s *server) Probeable(context.Context, clickhouse.Host) (map[string]string, error) {
	s.asked++
	return map[string]string{physical.Events: s.columns}, s.failure
}

func (*server) PhysicalColumns(context.Context) ([]physical.Column, error) { return nil, nil }

func (s *server) Parts(context.Context, clickhouse.Host, []string) ([]clickhouse.Part, error) {
	return slices.Clone(s.parts), nil
}

func (s *server) Digests(
	_ context.Context, _ clickhouse.Host, _ int64, _ string, _, parts []string, _ bool,
) (found []clickhouse.Digest, err error) {
	s.read++
	for _, d := range s.digests {
		if slices.Contains(parts, d.Part) {
			found = append(found, d)
		}
	}
	return found, nil
}

// has gives the server a part with rows of days.
func (s *server) has(name string, mutation int64, rows uint64, days ...int64) {
	s.parts = append(s.parts, clickhouse.Part{Table: physical.Events, Name: name, ID: name, Mutation: mutation, Rows: int64(rows)})
	for _, day := range days {
		s.digests = append(s.digests, clickhouse.Digest{Part: name, Day: day, Rows: rows, Sum: 1000 * rows})
	}
}

// look returns the version of a project's events; 0 if unknown.
func look(t *testing.T, p *prober, project int64) uint64 {
	t.Helper()
	place, err := admission.New(admission.Limits{Places: 1, Project: 1}).Enter(t.Context(), admission.Request{Project: project})
	if err != nil {
		t.Fatal(err)
	}
	defer place.Leave()
	found, err := p.probe(t.Context(), place, project, []string{physical.Events})
	if err != nil {
		t.Fatal(err)
	}
	if found == nil {
		return 0
	}
	version, ok := found.version(1, []string{physical.Events}, allTime[0])
	if !ok {
		t.Fatal("the events were not looked at")
	}
	return version
}

// TestStatementUnderWay: each part that a statement rewrites changes the version, even if the keys of the rows stay the same.
func TestStatementUnderWay(t *testing.T) {
	var s server
	p := newProber(&s)
	versions := map[uint64]string{}
	for _, step := range []struct {
		name   string
		first  int64
		second int64
	}{{"before", 0, 0}, {"half done", 7, 0}, {"done", 7, 7}, {"the next one, half done", 7, 9}} {
		s.parts, s.digests = nil, nil
		s.has(fmt.Sprint("2024_1_1_0_", step.first), step.first, 5, 1, 2)
		s.has(fmt.Sprint("2024_2_2_0_", step.second), step.second, 3, 1)
		version := look(t, p, 1)
		if other, known := versions[version]; known || version == 0 {
			t.Errorf("%s: version %d, as %s", step.name, version, other)
		}
		versions[version] = step.name
	}
}

// TestMergesMoveNothing: merging parts does not change the version.
func TestMergesMoveNothing(t *testing.T) {
	for _, mutation := range []int64{0, 7} {
		var s server
		p := newProber(&s)
		s.has("a", mutation, 5, 1, 2)
		s.has("b", mutation, 3, 1, 2)
		before := look(t, p, 1)
		s.parts, s.digests = nil, nil
		s.has("c", mutation, 8, 1, 2)
		if after := look(t, p, 1); after != before || before == 0 {
			t.Errorf("mutation %d: the version moves from %d to %d", mutation, before, after)
		}
	}
}

// TestTablesChange: changed columns change the version when the tables are looked at again, without reading any digest again.
func TestTablesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server{columns: "a"}
		s.has("a", 0, 5, 1, 2)
		p := newProber(&s)
		first := look(t, p, 1)
		s.columns = "b"
		if time.Sleep(probeableTTL - time.Second); look(t, p, 1) != first {
			t.Error("the tables are looked at again too early")
		}
		time.Sleep(time.Second)
		if second := look(t, p, 1); second == first || second == 0 || look(t, p, 1) != second {
			t.Errorf("the version moves from %d to %d", first, second)
		}
		if s.asked != 2 || s.read != 1 {
			t.Errorf("the tables were looked at %d times, digests read %d times", s.asked, s.read)
		}
	})
}

// hostAt is the only host of a client.
func hostAt(t *testing.T, address string) clickhouse.Host {
	t.Helper()
	client, err := clickhouse.Open(clickhouse.Config{DSN: "http://" + address}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	return client.Front()
}

// TestProbeOfAnotherHost: versions of different hosts differ, and what is known of one host is not used for another.
func TestProbeOfAnotherHost(t *testing.T) {
	s := server{front: hostAt(t, "first:1")}
	s.has("a", 0, 5, 1, 2)
	p := newProber(&s)
	first := look(t, p, 1)
	if first == 0 || look(t, p, 1) != first || s.asked != 1 {
		t.Fatalf("version %d, and the host was asked %d times whether it can be probed", first, s.asked)
	}
	s.front = hostAt(t, "second:1")
	second := look(t, p, 1)
	if second == 0 || second == first || s.asked != 2 || p.projects[1].host != s.front {
		t.Errorf("version %d of the first host, %d of the second, which was asked %d times", first, second, s.asked)
	}
	if p.held != p.projects[1].bytes() {
		t.Errorf("%d bytes are noted of %d", p.held, p.projects[1].bytes())
	}
}

// TestProbeFails: a probe that ClickHouse can't answer now is not an error of the query, and is not repeated each time.
func TestProbeFails(t *testing.T) {
	for _, kind := range []clickhouse.ErrorKind{clickhouse.Timeout, clickhouse.TooSlow, clickhouse.Memory, clickhouse.Busy, clickhouse.Internal} {
		synctest.Test(t, func(t *testing.T) {
			s := server{failure: &clickhouse.Error{Kind: kind}}
			s.has("a", 0, 5, 1)
			p := newProber(&s)
			for range 3 {
				if version := look(t, p, 1); version != 0 {
					t.Errorf("%s: version %d", kind, version)
				}
			}
			if s.asked != 1 {
				t.Errorf("%s: asked %d times", kind, s.asked)
			}
			s.failure = nil
			if time.Sleep(unprobeableTTL); look(t, p, 1) == 0 {
				t.Errorf("%s: it is never asked again", kind)
			}
		})
	}
}

// TestProbesHold: what is known of all projects is limited, parts without rows of a project count too, and the projects not probed for longest are dropped.
func TestProbesHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		p := newProber(&s)
		const parts = maxHeld / 5 / partBytes // a project has about a fifth
		for n := range parts {
			s.has(fmt.Sprint("p", n), 0, 1)
		}
		s.has("last", 0, 1, 1, 2, 3)
		held := func() (sum int) {
			for _, known := range p.projects {
				sum += projectBytes + len(known.parts)*partBytes + known.count*digestBytes
			}
			return sum
		}
		for project := int64(1); project <= 9; project++ {
			if look(t, p, project) == 0 || look(t, p, 1) == 0 {
				t.Fatalf("nothing is known of project %d", project)
			}
			if sum := held(); sum > maxHeld || p.held != sum {
				t.Fatalf("%d projects hold %d bytes, noted are %d", len(p.projects), sum, p.held)
			}
			time.Sleep(time.Second)
		}
		for project, want := range map[int64]bool{1: true, 2: false, 9: true} {
			if _, known := p.projects[project]; known != want {
				t.Errorf("project %d is known: %t", project, known)
			}
		}
		p.forget(1)
		if sum := held(); p.projects[1] != nil || p.held != sum {
			t.Errorf("after one was forgotten, noted are %d bytes of %d", p.held, sum)
		}
		for n := range 5 * parts { // more than there is room for
			s.has(fmt.Sprint("q", n), 0, 1)
		}
		if look(t, p, 9) != 0 || len(p.projects[9].parts) != 0 {
			t.Error("a project with too many parts is known")
		}
	})
}
