package nodes_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// seenWithin is how soon a write on one node is visible on all others.
const seenWithin = time.Second

// load is what clients do with a project on all nodes at the same time, with the results.
type load struct {
	fleet   *fleet
	project int64
	key     string
	token   string

	reads, refused, broken       atomic.Int64 // correct answers; 429 or 503; connections that ended
	writes, revoked, unsure      atomic.Int64 // acknowledged; keys; keys whose revocation may not have been received
	captured, doubtful           atomic.Int64 // events
	mu                           sync.Mutex
	wrong                        []string
	insights                     map[string]*written // by short id
	acknowledged, unacknowledged map[string]bool     // uuids of events
}

// written is an insight that one client changes repeatedly.
type written struct{ acknowledged, sent int }

func (l *load) node() *harness.Server { return l.fleet.nodes[rand.IntN(len(l.fleet.nodes))] }

func (l *load) client(key string) *harness.Client { return l.node().Client(l.project, key) }

// mistake records a violation.
func (l *load) mistake(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...)+l.fleet.lately())
}

// read sends requests that have only one right answer.
func (l *load) read() {
	n := 1 + rand.IntN(40)
	body := map[string]any{"query": map[string]any{"kind": "HogQLQuery", "query": fmt.Sprintf("select %d as n, sum(number) as total from numbers(%d)", n, n*1000)}}
	if rand.IntN(4) == 0 {
		body["refresh"] = "force_blocking"
	}
	node := l.node()
	answer, err := node.Client(l.project, l.key).Send(http.MethodPost, "query/", body)
	switch {
	case err != nil:
		l.broken.Add(1)
	case answer.Status == http.StatusServiceUnavailable || answer.Status == http.StatusTooManyRequests || answer.Status == http.StatusGatewayTimeout:
		l.refused.Add(1)
	case answer.Status != http.StatusOK:
		l.mistake("a read answered %d: %.300s\n%s", answer.Status, answer.Raw, node.LogEnd())
	default:
		rows, err := json.Marshal(answer.Body["results"])
		if want := fmt.Sprintf("[[%d,%d]]", n, n*1000*(n*1000-1)/2); err != nil || string(rows) != want {
			l.mistake("a read answered %s, want %s", rows, want)
			return
		}
		l.reads.Add(1)
	}
}

// write makes an insight, or changes one of the client's own.
func (l *load) write(own map[string]*written) {
	if len(own) < 5 || rand.IntN(20) == 0 {
		answer, err := l.client(l.key).Send(http.MethodPost, "insights/", map[string]any{"name": "0", "saved": true})
		if err != nil || answer.Status != http.StatusCreated {
			l.refusedWrite(answer.Status, answer.Raw, err)
			return
		}
		id := fmt.Sprint(answer.Body["id"])
		own[id] = &written{}
		l.mu.Lock()
		l.insights[id] = own[id]
		l.mu.Unlock()
		l.writes.Add(1)
		return
	}
	for id, w := range own { // any of them
		w.sent++
		answer, err := l.client(l.key).Send(http.MethodPatch, "insights/"+id+"/", map[string]any{"name": fmt.Sprint(w.sent)})
		switch {
		case err == nil && answer.Status == http.StatusOK:
			w.acknowledged = w.sent
			l.writes.Add(1)
		case err == nil && answer.Status == http.StatusNotFound: // another node may not know it yet
			l.refused.Add(1)
		default:
			l.refusedWrite(answer.Status, answer.Raw, err)
		}
		return
	}
}

// refusedWrite counts a write that was not acknowledged.
func (l *load) refusedWrite(status int, raw []byte, err error) {
	switch {
	case err != nil:
		l.broken.Add(1)
	case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
		l.refused.Add(1)
	default:
		l.mistake("a write answered %d: %.300s", status, raw)
	}
}

// revokeKey requests the revocation of a key until it is acknowledged, since the number of active keys is limited. It returns the time of that.
func (l *load) revokeKey(id string) (at time.Time, ok bool) {
	for range 600 {
		answer, err := l.client(l.key).Send(http.MethodDelete, "personal_api_keys/"+id+"/", nil)
		at = time.Now()
		switch {
		case err == nil && answer.Status == http.StatusNoContent:
			return at, true
		case err == nil && answer.Status == http.StatusNotFound: // an earlier attempt succeeded, or the node does not know the key yet
			if l.isGone(id) {
				return at, true
			}
		default:
			l.refusedWrite(answer.Status, answer.Raw, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	l.mistake("the key %s could not be revoked within a minute", id)
	return at, false
}

// isGone reports whether all nodes say that a key does not exist.
func (l *load) isGone(id string) bool {
	for _, node := range l.fleet.nodes {
		answer, err := node.Client(l.project, l.key).Send(http.MethodGet, "personal_api_keys/"+id+"/", nil)
		if err != nil || answer.Status != http.StatusNotFound {
			return false
		}
	}
	return true
}

// revoke makes a key, uses it, revokes it, and checks that no node accepts it a second later.
func (l *load) revoke() {
	answer, err := l.client(l.key).Send(http.MethodPost, "personal_api_keys/", map[string]any{"label": "short", "scopes": []string{"query:read"}})
	if err != nil || answer.Status != http.StatusCreated {
		l.refusedWrite(answer.Status, answer.Raw, err)
		return
	}
	id, key := fmt.Sprint(answer.Body["id"]), fmt.Sprint(answer.Body["value"])
	for range 3 {
		_, _ = l.client(key).Send(http.MethodGet, "query/", nil) // so that nodes know it
	}
	time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
	at, ok := l.revokeKey(id)
	if !ok {
		return
	}
	time.Sleep(seenWithin)
	taken := false
	for n, node := range l.fleet.nodes {
		used, err := node.Client(l.project, key).Send(http.MethodPost, "query/", map[string]any{"query": map[string]any{"kind": "HogQLQuery", "query": "select 1"}})
		if err == nil && used.Status == http.StatusOK {
			taken = true
			if !l.fleet.registryAway(at) {
				l.mistake("node %d took a key %s after it was revoked", n, time.Since(at))
			}
		}
	}
	if taken {
		l.unsure.Add(1)
	} else {
		l.revoked.Add(1)
	}
}

// capture sends some events.
func (l *load) capture() {
	batch := make([]map[string]any, 1+rand.IntN(8))
	for i := range batch {
		batch[i] = map[string]any{"event": "seen", "distinct_id": fmt.Sprintf("user-%d", rand.IntN(200)), "uuid": uuid.NewString()}
	}
	raw, err := json.Marshal(map[string]any{"api_key": l.token, "batch": batch})
	if err != nil {
		panic(err)
	}
	into, counted := l.unacknowledged, &l.doubtful
	if answer, err := http.Post(l.node().URL+"/batch/", "application/json", bytes.NewReader(raw)); err == nil {
		_ = answer.Body.Close() // only the status matters
		if answer.StatusCode == http.StatusOK {
			into, counted = l.acknowledged, &l.captured
		}
	}
	counted.Add(int64(len(batch)))
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range batch {
		into[fmt.Sprint(e["uuid"])] = true
	}
}

// run makes clients do all of that until stop is closed.
func (l *load) run(stop <-chan struct{}) *sync.WaitGroup {
	var clients sync.WaitGroup
	each := func(n int, pause time.Duration, do func() func()) {
		for range n {
			clients.Go(func() {
				next := do()
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Duration(rand.Int64N(int64(2 * pause)))):
						next()
					}
				}
			})
		}
	}
	each(4, 20*time.Millisecond, func() func() { return l.read })
	each(3, 50*time.Millisecond, func() func() {
		own := map[string]*written{}
		return func() { l.write(own) }
	})
	each(3, 100*time.Millisecond, func() func() { return l.revoke })
	each(3, 50*time.Millisecond, func() func() { return l.capture })
	return &clients
}
