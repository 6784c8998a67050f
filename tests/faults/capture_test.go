package faults_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

const (
	// captureKills is how often TestKilledDuringCapture kills the server or its engine.
	captureKills = 100
	// serverKills of them hit the server, the others the engine.
	serverKills = 40
	// captureClients send events at the same time.
	captureClients = 6
)

// sender is a client that captures events until it is stopped.
type sender struct {
	url, token, name string

	sent         int
	acknowledged map[string]bool // uuids of events answered with 200
	doubtful     map[string]bool // with another answer, or none
	refused      int             // requests with another answer
}

// send sends a batch of up to ten events. Some of them merge people.
func (s *sender) send() {
	type event struct {
		Event      string         `json:"event"`
		DistinctID string         `json:"distinct_id"`
		UUID       string         `json:"uuid"`
		Properties map[string]any `json:"properties"`
	}
	batch := make([]event, 1+rand.IntN(10))
	for i := range batch {
		s.sent++
		user := fmt.Sprintf("%s-%d", s.name, s.sent/20)
		batch[i] = event{"seen", fmt.Sprintf("%s-device-%d", user, s.sent%3), uuid.NewString(), map[string]any{"$set": map[string]any{"last": s.sent}}}
		if s.sent%20 > 16 {
			batch[i] = event{"$identify", user, uuid.NewString(), map[string]any{"$anon_distinct_id": fmt.Sprintf("%s-device-%d", user, s.sent%3)}}
		}
	}
	raw, err := json.Marshal(map[string]any{"api_key": s.token, "batch": batch})
	if err != nil {
		panic(err)
	}
	into := s.doubtful
	if answer, err := http.Post(s.url+"/batch/", "application/json", bytes.NewReader(raw)); err == nil {
		_ = answer.Body.Close() // only the status matters
		if answer.StatusCode == http.StatusOK {
			into = s.acknowledged
		} else {
			s.refused++
		}
	}
	for _, e := range batch {
		into[e.UUID] = true
	}
}

func captureToken(t *testing.T, server *harness.Server, project int64) string {
	t.Helper()
	token, err := server.CaptureToken(project)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestKilledDuringCapture kills the server and its engine at random moments while clients send events, and then looks for each event: acknowledged
// events are stored exactly once, the others at most once.
func TestKilledDuringCapture(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred restarts take minutes")
	}
	server := harness.Start(t)
	id, key := server.Project(t, "capture")
	token := captureToken(t, server, id)
	senders := make([]*sender, captureClients)
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i := range senders {
		s := &sender{url: server.URL, token: token, name: fmt.Sprint("client", i), acknowledged: map[string]bool{}, doubtful: map[string]bool{}}
		senders[i] = s
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(rand.IntN(20)) * time.Millisecond):
					s.send()
				}
			}
		})
	}
	for kill := range captureKills {
		time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond)
		if kill*serverKills/captureKills != (kill+1)*serverKills/captureKills {
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := server.Run(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		children, err := server.Children()
		if err != nil {
			t.Fatal(err)
		}
		if len(children) == 1 {
			_ = syscall.Kill(children[0], syscall.SIGKILL) // it may be the engine that was killed before, and have ended
		}
	}
	close(stop)
	running.Wait()
	want, maybe := map[string]bool{}, map[string]bool{}
	for _, s := range senders {
		for id := range s.acknowledged {
			want[id] = true
		}
		for id := range s.doubtful {
			maybe[id] = true
		}
	}
	server.AwaitDelivery(t)
	there := storedEvents(t, server.Client(id, key))
	for id := range want {
		if there[id] != 1 {
			t.Errorf("the acknowledged event %s is there %d times", id, there[id])
		}
	}
	for id, times := range there {
		if times != 1 || !want[id] && !maybe[id] {
			t.Errorf("the event %s is there %d times", id, times)
		}
	}
	checkPeople(t, server.Client(id, key))
	t.Logf("%d kills: %d events acknowledged, %d in doubt, %d of all there", captureKills, len(want), len(maybe), len(there))
	if len(want) < captureKills {
		t.Errorf("only %d events were acknowledged between %d kills", len(want), captureKills)
	}
}

// storedEvents returns how many times each event of a project is in ClickHouse, by uuid.
func storedEvents(t *testing.T, c *harness.Client) map[string]int {
	t.Helper()
	there := map[string]int{}
	for offset := 0; ; {
		answer := c.HogQL(t, fmt.Sprintf("select uuid from events order by uuid limit 50000 offset %d", offset))
		rows, _ := answer.Body["results"].([]any)
		if answer.Status != http.StatusOK {
			t.Fatalf("asking for events: %d %s", answer.Status, answer.Raw)
		}
		for _, row := range rows {
			if cells, ok := row.([]any); ok {
				there[fmt.Sprint(cells[0])]++
			}
		}
		if offset += len(rows); len(rows) < 50000 {
			return there
		}
	}
}

// checkPeople checks that no id has two people, and that the identified devices of a user belong to its person.
func checkPeople(t *testing.T, c *harness.Client) {
	t.Helper()
	for what, sql := range map[string]string{
		"ids with two people":              "select distinct_id, count(distinct person_id) as people from person_distinct_ids group by distinct_id having people > 1",
		"events of one id with two people": "select distinct_id, count(distinct person_id) as people from events group by distinct_id having people > 1",
		"identified devices that are apart": "select distinct e.properties.$anon_distinct_id as device from events e " +
			"join person_distinct_ids d on d.distinct_id = e.properties.$anon_distinct_id where e.event = '$identify' and d.person_id != e.person_id",
	} {
		if rows := c.Query(t, sql); len(rows) > 0 {
			t.Errorf("%s: %v", what, rows)
		}
	}
}

// TestCaptureWithoutClickHouse captures while ClickHouse is down: everything is kept, even across restarts, and delivered when ClickHouse is
// back.
func TestCaptureWithoutClickHouse(t *testing.T) {
	server := harness.Start(t)
	id, key := server.Project(t, "outage")
	token := captureToken(t, server, id)
	post := func(n int) int {
		t.Helper()
		body := fmt.Sprintf(`{"api_key":%q,"event":"e","distinct_id":"u","properties":{"n":%d}}`, token, n)
		answer, err := http.Post(server.URL+"/e/", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close() // only the status matters
		return answer.StatusCode
	}
	hung := server.Engine(t)
	if err := syscall.Kill(hung, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(hung, syscall.SIGCONT) }) // it may have ended
	for n := range 50 {
		if status := post(n); status != http.StatusOK {
			t.Fatalf("event %d with ClickHouse hung: %d", n, status)
		}
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Run(); err != nil {
		t.Fatal(err)
	}
	for n := range 50 {
		if status := post(50 + n); status != http.StatusOK {
			t.Fatalf("event %d after the restart: %d", 50+n, status)
		}
	}
	server.AwaitDelivery(t)
	rows := server.Client(id, key).Query(t, "select count(), uniq(properties.n) from events")
	if fmt.Sprint(rows) != "[[100 100]]" {
		t.Errorf("%v events are there, want 100", rows)
	}
}

// TestCaptureOverReloads captures while the config is reloaded repeatedly.
func TestCaptureOverReloads(t *testing.T) {
	server := harness.Start(t)
	id, key := server.Project(t, "reloads")
	s := &sender{url: server.URL, token: captureToken(t, server, id), name: "client", acknowledged: map[string]bool{}, doubtful: map[string]bool{}}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				s.send()
			}
		}
	})
	for n := range 20 {
		config := strings.Replace(server.Config(""), "data_dir", fmt.Sprintf("cache {\n\t\t\tmax_size %dMiB\n\t\t}\n\t\tlimits {\n\t\t\tmax_execution_time %ds\n\t\t}\n\t\tdata_dir", 100+n, 30+n), 1)
		if err := os.WriteFile(server.Caddyfile(), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := server.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	running.Wait()
	if s.refused > 0 || len(s.acknowledged) == 0 { // a connection may be closed as a request goes out on it
		t.Errorf("%d requests were refused over reloads; %d events were acknowledged", s.refused, len(s.acknowledged))
	}
	server.AwaitDelivery(t)
	there := storedEvents(t, server.Client(id, key))
	for id := range s.acknowledged {
		if there[id] != 1 {
			t.Errorf("the acknowledged event %s is there %d times", id, there[id])
		}
	}
	if most := len(s.acknowledged) + len(s.doubtful); len(there) > most {
		t.Errorf("%d events are there, and %d were sent", len(there), most)
	}
}

// TestCaptureIntoAFullProject captures properties and group types that exceed the project's limits or have too long names: the events are delivered without
// types for them, and so are later events.
func TestCaptureIntoAFullProject(t *testing.T) {
	server := harness.Start(t, "limits {\n\t\t\trecords_size 1MiB\n\t\t}")
	id, key := server.Project(t, "full")
	token := captureToken(t, server, id)
	send := func(events ...map[string]any) {
		t.Helper()
		raw, err := json.Marshal(map[string]any{"api_key": token, "batch": events})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.Post(server.URL+"/batch/", "application/json", bytes.NewReader(raw))
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("sending: %v %v", answer, err)
		}
		_ = answer.Body.Close() // only the status matters
		server.AwaitDelivery(t)
	}
	event := func(name string, properties map[string]any) map[string]any {
		return map[string]any{"event": name, "distinct_id": "u", "properties": properties}
	}
	many := make([]map[string]any, 3)
	for n := range many {
		properties := map[string]any{}
		for i := range 250 { // 1.2 MB of names in all
			properties[fmt.Sprint(n, " ", i, strings.Repeat("🙂", 390))] = 1
		}
		many[n] = event("many", properties)
	}
	send(many...)
	send(event("long", map[string]any{"$groups": map[string]any{strings.Repeat("g", 500): "k", "": "k", "org": "o"}}))
	send(event("last", map[string]any{}))
	rows := server.Client(id, key).Query(t, "select event, $group_0, count() from events group by 1, 2 order by 1")
	if fmt.Sprint(rows) != "[[last  1] [long o 1] [many  3]]" {
		t.Errorf("the events are %v", rows)
	}
}
