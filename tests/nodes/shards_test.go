package nodes_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// sharded is a server with two shards, the second of which can be cut off.
type sharded struct {
	*harness.Server

	main, east driver.Conn // direct connections, not through the server
	cut        *harness.Relay
	config     string // of the shards
}

// tenant is a project on a shard.
type tenant struct {
	*harness.Client

	token string
}

func startSharded(t *testing.T) *sharded {
	t.Helper()
	main, east := embeddedtest.New(t), embeddedtest.New(t)
	through, relays := harness.Relays(t, east.DSN(), 1)
	config := fmt.Sprintf("clickhouse %s {\n\t\t\tshard east %s\n\t\t}", main.DSN(), through)
	s := &sharded{
		Server: harness.Start(t, config, "registry "+postgrestest.New(t).Database(t), unlimited),
		main:   embeddedtest.Connect(t, main.DSN()), east: embeddedtest.Connect(t, east.DSN()), cut: relays[0], config: config,
	}
	return s
}

// tenant makes a project.
func (s *sharded) tenant(t *testing.T, name string, more ...string) tenant {
	t.Helper()
	id, _ := s.Project(t, name, more...)
	key := s.Key(t, id, harness.AllScopes, "personal")
	token, err := s.CaptureToken(id)
	if err != nil {
		t.Fatal(err)
	}
	return tenant{s.Client(id, key), token}
}

// seen captures one event for each of some people.
func (s *sharded) seen(t *testing.T, by tenant, people int) {
	t.Helper()
	batch := make([]map[string]any, people)
	for n := range batch {
		batch[n] = map[string]any{"event": "seen", "distinct_id": fmt.Sprint("user-", n), "properties": map[string]any{"$set": map[string]any{"number": n}}}
	}
	answer := by.Do(t, http.MethodPost, "/batch/", map[string]any{"api_key": by.token, "batch": batch})
	if answer.Status != http.StatusOK {
		t.Fatalf("capturing: %d %s", answer.Status, answer.Raw)
	}
}

// rows returns how many rows of each project a table on a shard has.
func rows(t *testing.T, shard driver.Conn, table string) map[int64]int {
	t.Helper()
	found, err := shard.Query(t.Context(), "SELECT team_id, toInt64(count()) FROM "+table+" GROUP BY team_id")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := found.Close(); err != nil {
			t.Error(err)
		}
	}()
	counts := map[int64]int{}
	for found.Next() {
		var project, count int64
		if err := found.Scan(&project, &count); err != nil {
			t.Fatal(err)
		}
		counts[project] = int(count)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return counts
}

// counted returns the answer to a query that counts a project's events and people.
func (of tenant) counted(t *testing.T) string {
	t.Helper()
	return fmt.Sprint(of.Query(t, fmt.Sprintf("select count(), uniq(person_id), countIf(person.properties.number >= 0), %d from events", time.Now().UnixNano()))...)
}

// asks runs the project's endpoint and another query, a number of times.
func (of tenant) asks(t *testing.T, times int) {
	t.Helper()
	for range times {
		if answer := of.Do(t, http.MethodPost, "endpoints/mine/run/", nil); answer.Status != http.StatusOK {
			t.Fatalf("running the endpoint: %d %s", answer.Status, answer.Raw)
		}
		of.Query(t, fmt.Sprintf("select 'asked', %d", time.Now().UnixNano()))
	}
}

// asked checks that the log has the queries of asks, with the number of times.
func (of tenant) asked(t *testing.T, times int) {
	t.Helper()
	of.Shows(t, "select count(), uniq(query_id) from query_log where query like 'select \\'asked\\'%'", []any{float64(times), float64(times)})
	harness.Eventually(t, 2*time.Minute, func() error { // while ClickHouse takes more than 2 s, the answers have what is in memory
		usage := of.Do(t, http.MethodGet, "endpoints/mine/usage/", nil)
		if day, _ := usage.Body["day"].(map[string]any); usage.Status != http.StatusOK || day["answered"] != float64(times) {
			return fmt.Errorf("the usage of project %d is %d %s, want %d runs", of.Project, usage.Status, usage.Raw, times)
		}
		if log := of.Do(t, http.MethodGet, "endpoints/mine/logs/", nil); log.Status != http.StatusOK || log.Body["count"] != float64(times) {
			return fmt.Errorf("the runs of project %d are %d %s, want %d", of.Project, log.Status, log.Raw, times)
		}
		return nil
	})
}

// TestShards has projects on two shards: each sees its own rows, which are only on its shard, whatever is done with them. When a shard is down, projects
// on the other one are not affected, and a config without a shard makes its projects wait.
func TestShards(t *testing.T) {
	s := startSharded(t)
	first := s.tenant(t, "first")
	second := s.tenant(t, "second")
	third := s.tenant(t, "third", "--shard", "east")
	fourth := s.tenant(t, "fourth", "--shard", "")
	if _, message, err := s.Command(nil, "project", "create", "--name", "fifth", "--shard", "west"); err == nil || !strings.Contains(message, `no shard \"west\"`) && !strings.Contains(message, `no shard "west"`) {
		t.Errorf("a project on a shard that is not there: %v %s", err, message)
	}
	var listed struct {
		Projects []struct {
			ID    int64
			Shard string
		}
	}
	s.MustCommand(t, &listed, nil, "project", "list")
	on := map[int64]string{}
	for _, p := range listed.Projects {
		on[p.ID] = p.Shard
	}
	if diff := cmp.Diff(map[int64]string{first.Project: "", second.Project: "east", third.Project: "east", fourth.Project: ""}, on); diff != "" {
		t.Errorf("the shards of the projects (-want +got):\n%s", diff)
	}

	people := map[int64]int{}
	for n, of := range []tenant{first, second, third, fourth} {
		people[of.Project] = 10 * (n + 1)
		s.seen(t, of, people[of.Project])
	}
	s.AwaitDelivery(t)
	inShard := func(tenants ...tenant) map[int64]int {
		want := map[int64]int{}
		for _, of := range tenants {
			if n := people[of.Project]; n > 0 {
				want[of.Project] = n
			}
		}
		return want
	}
	check := func(doing string) {
		t.Helper()
		for _, table := range []string{"events", "(SELECT team_id FROM person FINAL WHERE is_deleted = 0)"} {
			if diff := cmp.Diff(inShard(first, fourth), rows(t, s.main, table)); diff != "" {
				t.Errorf("%s: rows of %s on the main shard (-want +got):\n%s", doing, table, diff)
			}
			if diff := cmp.Diff(inShard(second, third), rows(t, s.east, table)); diff != "" {
				t.Errorf("%s: rows of %s on the shard east (-want +got):\n%s", doing, table, diff)
			}
		}
		for _, of := range []tenant{first, second, third, fourth} {
			n := people[of.Project]
			if n == 0 {
				continue
			}
			if got, want := of.counted(t)[:1+len(fmt.Sprint(n, n, n))], fmt.Sprintf("[%d %d %d", n, n, n); got != want {
				t.Errorf("%s: project %d counts %s, want %s", doing, of.Project, got, want)
			}
		}
	}
	check("after the capture")

	// A cohort is computed, a person is deleted, and an import arrives, all on the shard east.
	made := second.Do(t, http.MethodPost, "cohorts/", map[string]any{"name": "some", "filters": map[string]any{"properties": map[string]any{
		"type": "AND", "values": []any{map[string]any{"type": "person", "key": "number", "operator": "lt", "value": 5}},
	}}})
	if made.Status != http.StatusCreated {
		t.Fatalf("making a cohort: %d %s", made.Status, made.Raw)
	}
	harness.Eventually(t, time.Minute, func() error {
		answer, err := second.Send(http.MethodGet, fmt.Sprintf("cohorts/%v/", made.Body["id"]), nil)
		if err == nil && answer.Body["count"] != 5.0 {
			err = fmt.Errorf("%d %s, want 5 members", answer.Status, answer.Raw)
		}
		return err
	})
	if got := rows(t, s.east, "cohortpeople"); got[second.Project] != 5 || len(rows(t, s.main, "cohortpeople")) != 0 {
		t.Errorf("the members of the cohort are on the shards %v and %v", rows(t, s.main, "cohortpeople"), got)
	}
	person := fmt.Sprint(second.Query(t, "select id from persons where properties.number = 7")...)
	gone := second.Do(t, http.MethodDelete, "persons/"+strings.Trim(person, "[]")+"/?delete_events=true", nil)
	if gone.Status != http.StatusAccepted && gone.Status != http.StatusNoContent {
		t.Fatalf("deleting a person: %d %s", gone.Status, gone.Raw)
	}
	people[second.Project]--
	s.MustCommand(t, nil, strings.NewReader(`{"type":"event","event":"seen","distinct_id":"late","timestamp":"2026-05-01T10:00:00Z","properties":{"$set":{"number":77}}}`+"\n"),
		"import", "--project", fmt.Sprint(third.Project), "-")
	people[third.Project]++
	check("after a deletion and an import")
	for n, of := range []tenant{first, second} {
		if made := of.Do(t, http.MethodPost, "endpoints/", map[string]any{
			"name": "mine", "query": map[string]any{"kind": "HogQLQuery", "query": "select 'mine'"},
		}); made.Status != http.StatusCreated {
			t.Fatalf("making an endpoint: %d %s", made.Status, made.Raw)
		}
		of.asks(t, 2+n)
		of.asked(t, 2+n)
	}
	harness.Eventually(t, time.Minute, func() error { // counts are written every ten seconds
		for n, of := range []tenant{first, second} {
			for m, shard := range []driver.Conn{s.main, s.east} {
				want := 0
				if m == n {
					want = 2 + n
				}
				for _, logged := range []string{
					"(SELECT team_id FROM query_log WHERE query LIKE '%asked%' AND query NOT LIKE '%LIKE%' AND query NOT LIKE '%like%')",
					"(SELECT team_id FROM run_log ARRAY JOIN range(calls) WHERE outcome = 'answered')",
				} {
					if got := rows(t, shard, logged)[of.Project]; got != want {
						return fmt.Errorf("shard %d has %d rows of project %d in %s, want %d", m, got, of.Project, logged, want)
					}
				}
			}
		}
		return nil
	})

	// The shard east is down.
	s.cut.Set(harness.Refuses)
	harness.Eventually(t, time.Minute, func() error {
		answer, err := second.Send(http.MethodPost, "query/", map[string]any{"refresh": "force_blocking", "query": map[string]any{"kind": "HogQLQuery", "query": "select 1"}})
		if err == nil && answer.Status != http.StatusServiceUnavailable {
			err = fmt.Errorf("it answered %d: %s", answer.Status, answer.Raw)
		}
		return err
	})
	late := 0 // events that both have in addition to people
	round := func(waiting int) {
		t.Helper()
		for _, of := range []tenant{second, first} {
			s.seen(t, of, 3)
		}
		late += 3
		harness.Eventually(t, time.Minute, func() error {
			if got := rows(t, s.main, "events"); got[first.Project] != people[first.Project]+late || got[second.Project] != 0 {
				return fmt.Errorf("the main shard has %v, want %d of project %d", got, people[first.Project]+late, first.Project)
			}
			return nil
		})
		var status struct {
			Waiting int `json:"waiting_events"`
			Shards  []struct {
				Shard   string
				Waiting int `json:"waiting_events"`
				Failing string
			}
		}
		harness.Eventually(t, time.Minute, func() error { // the journal forgets delivered events a moment later
			if err := s.Ask("/analytics/capture", nil, &status); err != nil {
				return err
			}
			if len(status.Shards) != 1 || status.Shards[0].Shard != "east" || status.Waiting != waiting || status.Shards[0].Waiting != waiting || status.Shards[0].Failing == "" {
				return fmt.Errorf("of %d events that wait for the shard the status says %+v", waiting, status)
			}
			return nil
		})
	}
	for n := range 3 {
		round(3 * (n + 1))
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	round(12)
	first.asks(t, 1) // the rows on the shard are counted together with the new ones
	first.asked(t, 3)
	for reachable, of := range map[bool]tenant{true: first, false: second} {
		if answer := of.Do(t, http.MethodGet, "status/", nil); answer.Status != http.StatusOK || answer.Body["clickhouse"].(map[string]any)["reachable"] != reachable {
			t.Errorf("with one shard away project %d is told %d: %s", of.Project, answer.Status, answer.Raw)
		}
	}
	s.cut.Set(harness.Works)
	s.AwaitDelivery(t)
	second.asked(t, 3)
	if got := rows(t, s.east, "events"); got[second.Project] != people[second.Project]+late {
		t.Errorf("what was captured while the shard was away: %v", got)
	}

	// A backup would contain only one shard.
	if _, message, err := s.Command(nil, "backup", "create", t.TempDir()); err == nil || !strings.Contains(message, "shards") {
		t.Errorf("a backup of one shard: %v %s", err, message)
	}

	// A project is deleted on its shard.
	s.MustCommand(t, nil, nil, "project", "delete", fmt.Sprint(third.Project), "--confirm", "third")
	harness.Eventually(t, time.Minute, func() error {
		if got := rows(t, s.east, "events"); got[third.Project] != 0 || got[second.Project] == 0 {
			return fmt.Errorf("the shard has %v", got)
		}
		return nil
	})

	// A config without the shard makes only its project wait, and writes nothing elsewhere.
	raw, err := os.ReadFile(s.Caddyfile())
	if err != nil {
		t.Fatal(err)
	}
	server, _, _ := strings.Cut(s.config, " {")
	without := strings.Replace(string(raw), s.config, server, 1)
	if without == string(raw) {
		t.Fatal("the config is as before")
	}
	if err := os.WriteFile(s.Caddyfile(), []byte(without), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		round(3 * (n + 1))
	}
	answer := second.Do(t, http.MethodPost, "query/", map[string]any{"refresh": "force_blocking", "query": map[string]any{"kind": "HogQLQuery", "query": "select count() from events"}})
	if answer.Status != http.StatusServiceUnavailable {
		t.Errorf("without its shard a project answers %d: %s", answer.Status, answer.Raw)
	}
	if got := fmt.Sprint(first.Query(t, "select count() from events")...); got != fmt.Sprintf("[%d]", people[first.Project]+late) {
		t.Errorf("a project of the main shard counts %s", got)
	}
	second.Do(t, http.MethodPost, "endpoints/mine/run/", nil) // it has no row on any shard
	first.asks(t, 1)
	first.asked(t, 4)
	if err := os.WriteFile(s.Caddyfile(), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	s.AwaitDelivery(t)
	if got := rows(t, s.east, "events"); got[second.Project] != people[second.Project]+late {
		t.Errorf("what was captured while the config lacked the shard: %v", got)
	}
}
