package faults_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

const (
	// crashes is the number of times that TestKilledDuringWrites kills the server.
	crashes = 100
	// crashWriters is the number of clients that write concurrently.
	crashWriters = 4
	// crashWrites is the number of acknowledged writes before the server is killed.
	crashWrites = 12
)

// written is the acknowledged state of a record.
type written struct {
	path string
	want map[string]any // members of its record
}

// TestKilledDuringWrites kills the server repeatedly while clients save and change insights and dashboards, and checks after
// each start that everything acknowledged is there unchanged. It needs no ClickHouse, so there
// is none.
func TestKilledDuringWrites(t *testing.T) {
	server := harness.Start(t, "clickhouse http://127.0.0.1:1/default")
	id, key := server.Project(t, "crash")
	c := server.Client(id, key)
	var writers [crashWriters]writer
	for i := range writers {
		writers[i] = writer{client: c, name: fmt.Sprintf("writer %d", i), last: map[string]written{}}
	}
	acknowledged := 0
	for range crashes {
		told := make(chan string)
		stopped := make(chan struct{})
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() { writers[i].write(told, stopped) })
		}
		refused := ""
		for n := 0; n < crashWrites && refused == ""; n++ {
			refused = <-told
		}
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		close(stopped)
		all.Wait()
		if refused != "" {
			t.Fatal(refused)
		}
		if err := server.Run(); err != nil {
			t.Fatal(err)
		}
		for i := range writers {
			acknowledged += writers[i].check(t)
		}
		if t.Failed() {
			return
		}
	}
	for i := range writers { // everything once more, including what was checked before
		writers[i].checkAll(t)
	}
	t.Logf("%d acknowledged writes in %d crashes", acknowledged, crashes)
}

// writer is a client that saves and changes its own records.
type writer struct {
	client *harness.Client
	name   string
	round  int

	last  map[string]written // by path: the newest acknowledged state
	fresh []string           // paths written since the last check
	doubt string             // path of the write without an answer, which may or may not have been applied
}

// write writes until a write is not acknowledged. For each write it sends what went wrong, or "".
func (w *writer) write(told chan<- string, stopped <-chan struct{}) {
	w.fresh, w.doubt = nil, ""
	for {
		w.round++
		why := w.step()
		select {
		case told <- why:
		case <-stopped:
			return
		}
		if why != "" {
			return
		}
	}
}

// step makes one write: in turn an insight, a dashboard with it, a change, a deletion or a restoration.
func (w *writer) step() (why string) {
	name := fmt.Sprintf("%s, write %d", w.name, w.round)
	var newest string
	for _, path := range w.fresh {
		if strings.HasPrefix(path, "insights/") {
			newest = path
		}
	}
	switch turn := w.round % 6; {
	case turn == 1 || newest == "":
		return w.send(http.MethodPost, "insights/", map[string]any{
			"name": name, "query": map[string]any{"kind": "HogQLQuery", "query": "select 1"}, "tags": []string{w.name},
		}, "name", "short_id", "tags", "query", "deleted")
	case turn == 2:
		return w.send(http.MethodPost, "dashboards/", map[string]any{
			"name": name, "tiles": []any{map[string]any{"insight": w.last[newest].want["id"], "color": "blue"}},
		}, "name", "deleted")
	case turn == 3:
		return w.send(http.MethodPatch, newest, map[string]any{"name": name, "favorited": true}, "name", "favorited", "tags", "deleted")
	case turn == 4:
		return w.send(http.MethodPatch, newest, map[string]any{"deleted": true}, "deleted")
	case turn == 5:
		return w.send(http.MethodPatch, newest, map[string]any{"deleted": false}, "name", "deleted", "tags")
	}
	return w.send(http.MethodPut, newest, map[string]any{"description": name}, "name", "description", "deleted")
}

// send sends a write and records members of the response, or returns why the write was not acknowledged.
func (w *writer) send(method, path string, body map[string]any, members ...string) (why string) {
	w.doubt = path
	answer, err := w.client.Send(method, path, body)
	if err != nil || answer.Status >= 300 {
		return fmt.Sprintf("%s %s before the server was killed: %v: %d %s", method, path, err, answer.Status, answer.Raw)
	}
	w.doubt = ""
	if method == http.MethodPost {
		path = fmt.Sprintf("%s%v/", path, answer.Body["id"])
	}
	want := map[string]any{"id": answer.Body["id"]}
	for _, name := range members {
		want[name] = answer.Body[name]
	}
	w.last[path] = written{path, want}
	w.fresh = append(w.fresh, path)
	return ""
}

// check checks what was written since the last check, and returns the number of writes.
func (w *writer) check(t *testing.T) int {
	t.Helper()
	for _, path := range w.fresh {
		if path != w.doubt {
			w.compare(t, w.last[path])
		}
	}
	if w.doubt != "" {
		delete(w.last, w.doubt)
	}
	return len(w.fresh)
}

func (w *writer) checkAll(t *testing.T) {
	t.Helper()
	for _, last := range w.last {
		w.compare(t, last)
	}
}

func (w *writer) compare(t *testing.T, last written) {
	t.Helper()
	answer := w.client.Do(t, http.MethodGet, last.path, nil)
	if last.want["deleted"] == true {
		if answer.Status != http.StatusNotFound {
			t.Errorf("%s was deleted but returns %d: %s", last.path, answer.Status, answer.Raw)
		}
		return
	}
	if answer.Status != http.StatusOK {
		t.Errorf("%s was acknowledged but returns %d: %s", last.path, answer.Status, answer.Raw)
		return
	}
	for name, want := range last.want {
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(answer.Body[name])
		if string(a) != string(b) {
			t.Errorf("%s of %s was acknowledged as %s but is %s", name, last.path, a, b)
		}
	}
}
