package routes_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/memory"
)

// slowClient is a client that has not read anything of the body before it is released.
type slowClient struct {
	httptest.ResponseRecorder

	reads, release chan struct{}
}

func (c *slowClient) Write(body []byte) (int, error) {
	c.reads <- struct{}{}
	<-c.release
	return len(body), nil
}

// serves sends a request in the background, and returns a channel that is closed when it has been answered.
func serves(w *apitest.World, to http.ResponseWriter, r *http.Request) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.API.ServeHTTP(to, r)
	}()
	return done
}

// TestSlowClients: clients that do not read large pages hold no more than the project's share of memory, whether pages are in the cache or not. The same page
// counts once. Small ones are not affected.
func TestSlowClients(t *testing.T) {
	const size = 4 << 20
	w := apitest.New(t)
	pool := memory.NewPool(size)
	w.API.Memory = pool
	e := w.NewEndpoint(t, "mine", "select n from events")
	plan, err := w.Asks(http.MethodPost, "/").PlanRun(e, []byte(`{"limit": 100}`))
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]string, 20)
	for n := range rows {
		rows[n] = fmt.Sprintf("[%d, %q]", n, strings.Repeat("x", 64<<10))
	}
	w.Remember(t, plan, time.Now(), rows...)
	ask := func(ctx context.Context, page string) *http.Request {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/projects/@current/endpoints/mine/run", strings.NewReader(page))
		r.Header.Set("Authorization", "Bearer "+w.Secret)
		return r
	}
	var clients []*slowClient
	var answered []<-chan struct{}
	for _, page := range []string{`{"limit": 15}`, `{"limit": 16}`, `{"limit": 15}`, `{"limit": 16}`, `{"limit": 15}`} {
		c := &slowClient{ResponseRecorder: *httptest.NewRecorder(), reads: make(chan struct{}), release: make(chan struct{})}
		answered = append(answered, serves(w, c, ask(t.Context(), page)))
		clients = append(clients, c)
		<-c.reads
	}
	if lent := pool.Lent(); lent < 31*64<<10 || lent > size/2 {
		t.Errorf("%d bytes are lent for two pages of 15 and 16 times 64 KiB", lent)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	refused := httptest.NewRecorder()
	<-serves(w, refused, ask(impatient, `{"limit": 17}`))
	if refused.Body.Len() > 1<<10 || refused.Code == http.StatusOK {
		t.Errorf("a third page is answered with %d and %d bytes", refused.Code, refused.Body.Len())
	}
	if answer := w.Send(t, http.MethodPost, "/api/projects/@current/endpoints/mine/run", `{"limit": 1}`); answer.Code != http.StatusOK {
		t.Errorf("a small page: %d %.300s", answer.Code, answer.Body)
	}
	for n, c := range clients {
		close(c.release)
		<-answered[n]
	}
	if lent := pool.Lent(); lent != 0 {
		t.Errorf("%d bytes are lent after all clients have read", lent)
	}
	if answer := w.Send(t, http.MethodPost, "/api/projects/@current/endpoints/mine/run", `{"limit": 17}`); answer.Code != http.StatusOK {
		t.Errorf("the third page, later: %d %.300s", answer.Code, answer.Body)
	}
}

// TestSlowUploads: the bodies of requests count as they arrive, those of strangers too, and nothing is lent after the answer.
func TestSlowUploads(t *testing.T) {
	for name, tt := range map[string]struct {
		key  bool
		want int
	}{
		"with a key": {true, http.StatusBadRequest},
		"a stranger": {false, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			w := apitest.New(t)
			pool := memory.NewPool(8 << 20)
			w.API.Memory = pool
			body, client := io.Pipe()
			r := httptest.NewRequest(http.MethodPost, "/api/projects/@current/query/", body)
			r.ContentLength = -1
			if tt.key {
				r.Header.Set("Authorization", "Bearer "+w.Secret)
			}
			answer := httptest.NewRecorder()
			answered := serves(w, answer, r)
			for range 3 {
				if _, err := client.Write(bytes.Repeat([]byte(" "), memory.Large)); err != nil {
					t.Fatal(err)
				}
			}
			if lent := pool.Lent(); lent < 2*memory.Large || lent > 4<<20 {
				t.Errorf("%d bytes are lent for %d that arrived", lent, 3*memory.Large)
			}
			if err := client.Close(); err != nil {
				t.Fatal(err)
			}
			<-answered
			if answer.Code != tt.want {
				t.Errorf("answered %d %s, want %d", answer.Code, answer.Body, tt.want)
			}
			if lent := pool.Lent(); lent != 0 {
				t.Errorf("%d bytes are lent after the answer", lent)
			}
		})
	}
}

// TestKnownPage: a client that has a page already needs no memory for it.
func TestKnownPage(t *testing.T) {
	w := apitest.New(t)
	e := w.NewEndpoint(t, "mine", "select n from events")
	plan, err := w.Asks(http.MethodGet, "/").PlanRun(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Remember(t, plan, time.Now(), fmt.Sprintf("[1, %q]", strings.Repeat("x", 2*memory.Large)))
	w.API.Memory = memory.NewPool(64 * memory.Large)
	const path = "/api/projects/@current/endpoints/mine/run"
	first := w.Send(t, http.MethodGet, path, "")
	if first.Code != http.StatusOK || first.Body.Len() < 2*memory.Large {
		t.Fatalf("answered %d with %d bytes", first.Code, first.Body.Len())
	}
	w.API.Memory = memory.NewPool(1)
	if again := w.Send(t, http.MethodGet, path, "", "If-None-Match", first.Header().Get("Etag")); again.Code != http.StatusNotModified {
		t.Errorf("answered %d %.300s", again.Code, again.Body)
	}
}

// TestUploadWithoutMemory: a body for which there is no memory is refused, and the client is told to come back.
func TestUploadWithoutMemory(t *testing.T) {
	w := apitest.New(t)
	w.API.Memory = memory.NewPool(1) // no large body gets any
	answer := w.Send(t, http.MethodPost, "/api/projects/@current/query/", strings.Repeat(" ", memory.Large+1))
	if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") == "" || apitest.FieldOf(t, answer, "code") != "server_busy" {
		t.Errorf("answered %d %s", answer.Code, answer.Body)
	}
	if answer := w.Send(t, http.MethodPost, "/api/projects/@current/query/", "{}"); answer.Code != http.StatusBadRequest {
		t.Errorf("a small body: %d %s", answer.Code, answer.Body)
	}
}

// TestManyValues: a body whose values would take gigabytes of memory once they are decoded is refused, as JSON and as a form, before any of them is.
func TestManyValues(t *testing.T) {
	w := apitest.New(t)
	w.NewEndpoint(t, "mine", "select n from events")
	const form = "application/x-www-form-urlencoded"
	list := "[1" + strings.Repeat(",1", 200_000) + "]"
	objects := "[{}" + strings.Repeat(",{}", 20_000) + "]"
	lists := "[" + strings.Repeat("[[[]]],", 70_000) + "1]"
	deep := strings.Repeat("[", 64) + "[]" + strings.Repeat("]", 64)
	for name, tt := range map[string]struct{ path, typ, body, attr string }{
		"a variable of a run":       {"endpoints/mine/run", "", `{"variables": {"country": ` + list + `}}`, "variables"},
		"objects in a variable":     {"endpoints/mine/run", "", `{"variables": {"country": ` + objects + `}}`, "variables"},
		"lists in a variable":       {"endpoints/mine/run", "", `{"variables": {"country": ` + lists + `}}`, "variables"},
		"a list that is deep":       {"endpoints/mine/run", "", `{"variables": {"country": ` + deep + `}}`, "variables"},
		"a variable of a query":     {"query/", "", `{"query": {}, "variables_override": {"country": ` + list + `}}`, "variables_override"},
		"filters of a query":        {"query/", "", `{"query": {}, "filters_override": {"properties": ` + objects + `}}`, "filters_override"},
		"names of endpoints":        {"endpoints/last_execution_times/", "", `{"names": ` + list + `}`, "names"},
		"a field of a form":         {"endpoints/last_execution_times/", form, "names=" + list, "names"},
		"fields of a body":          {"endpoints/last_execution_times/", "", "{" + strings.Repeat(`"a":1,`, 1_000_000) + `"b":1}`, ""},
		"fields around a query":     {"query/", "", "{" + strings.Repeat(`"a":1,`, 1_000_000) + `"b":1}`, ""},
		"objects in a query's body": {"query/", "", `{"query": [{}` + strings.Repeat(",{}", 100_000) + `]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			headers := []string{}
			if tt.typ != "" {
				headers = []string{"Content-Type", tt.typ}
			}
			answer := w.Send(t, http.MethodPost, "/api/projects/@current/"+tt.path, tt.body, headers...)
			want := "A field can have 200000 values and 20000 objects, and this one has more."
			switch {
			case tt.attr == "":
				want = "JSON parse error - more than 1000000 values or 100000 objects"
			case strings.Contains(tt.body, deep):
				want = "A field can be nested 64 levels deep, and this one is deeper."
			}
			if got := apitest.FieldOf(t, answer, "detail"); answer.Code != http.StatusBadRequest || got != want {
				t.Errorf("answered %d %.300s", answer.Code, answer.Body)
			}
			if got, _ := apitest.FieldOf(t, answer, "attr").(string); got != tt.attr {
				t.Errorf("the field is %q, want %q", got, tt.attr)
			}
		})
	}
}
