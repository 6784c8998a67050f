package faults_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/freeport"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// receiver is a webhook. It runs the test's function, then answers each request with 200.
type receiver struct {
	mu    sync.Mutex
	ids   []string
	types []string
	then  func() // called once, before the next answer
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.ids = append(r.ids, req.Header.Get("Webhook-Id"))
	r.types = append(r.types, string(body))
	then := r.then
	r.then = nil
	r.mu.Unlock()
	if then != nil {
		then()
	}
}

// got returns what it has received so far.
func (r *receiver) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.ids...)
}

// listen makes the receiver listen until the test ends.
func (r *receiver) listen(t *testing.T, port int) {
	t.Helper()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: r}
	var done sync.WaitGroup
	done.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		_ = server.Close()
		done.Wait()
	})
}

// waitingAlert is a project's alert as the operator sees it.
type waitingAlert struct {
	ID         string `json:"id"`
	State      string `json:"state"`
	NotifiedAt string `json:"last_notified_at"`
	Waiting    []struct {
		ID        string `json:"id"`
		Tries     int    `json:"tries"`
		LastError string `json:"last_error"`
	} `json:"waiting_deliveries"`
}

// operatorSees waits until a project's alert is as expected.
func operatorSees(t *testing.T, s *harness.Server, project int64, what string, is func(waitingAlert) bool) waitingAlert {
	t.Helper()
	var seen struct{ Alerts []waitingAlert }
	harness.Eventually(t, 2*time.Minute, func() error {
		if err := s.Ask("/analytics/alerts?project="+strconv.FormatInt(project, 10), nil, &seen); err != nil {
			return err
		}
		if len(seen.Alerts) != 1 || !is(seen.Alerts[0]) {
			return fmt.Errorf("%s: %+v", what, seen.Alerts)
		}
		return nil
	})
	return seen.Alerts[0]
}

// firingAlert adds an alert that always fires.
func firingAlert(t *testing.T, s *harness.Server) (c *harness.Client, id string) {
	t.Helper()
	project, key := s.Project(t, t.Name())
	c = s.Client(project, key)
	insight := c.Do(t, http.MethodPost, "insights/", map[string]any{"query": map[string]any{
		"kind": "TrendsQuery", "series": []any{map[string]any{"kind": "EventsNode", "event": "a"}},
	}})
	made := c.Do(t, http.MethodPost, "alerts/", map[string]any{
		"insight": insight.Body["id"], "subscribed_users": []any{}, "condition": map[string]any{"type": "absolute_value"},
		"config":    map[string]any{"type": "TrendsAlertConfig", "series_index": 0},
		"threshold": map[string]any{"configuration": map[string]any{"type": "absolute", "bounds": map[string]any{"lower": 1}}},
	})
	id, ok := made.Body["id"].(string)
	if made.Status != http.StatusCreated || !ok {
		t.Fatalf("creating an alert: %d %s", made.Status, made.Raw)
	}
	return c, id
}

// TestWebhookDown: a message for a receiver that is down survives the death of the server, and is delivered when the receiver is up.
func TestWebhookDown(t *testing.T) {
	ports, err := freeport.Find(1)
	if err != nil {
		t.Fatal(err)
	}
	s := harness.Start(t, fmt.Sprintf("alerts {\n\t\t\twebhook http://127.0.0.1:%d/\n\t\t}", ports[0]))
	c, id := firingAlert(t, s)
	waits := operatorSees(t, s, c.Project, "no try to send a message", func(a waitingAlert) bool { return len(a.Waiting) == 1 && a.Waiting[0].Tries > 0 })
	if !strings.Contains(waits.Waiting[0].LastError, "connection refused") || waits.State != "Firing" {
		t.Errorf("%+v", waits)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	var r receiver
	r.listen(t, ports[0])
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	operatorSees(t, s, c.Project, "a message that waits", func(a waitingAlert) bool { return len(a.Waiting) == 0 && a.NotifiedAt != "" })
	if got := r.got(); len(got) != 1 || got[0] != waits.Waiting[0].ID {
		t.Errorf("the receiver got %v, want %s", got, waits.Waiting[0].ID)
	}
	check, _ := c.Do(t, http.MethodGet, "alerts/"+id+"/", nil).Body["checks"].([]any)
	if len(check) != 1 || check[0].(map[string]any)["targets_notified"] != true {
		t.Errorf("%v", check)
	}
}

// TestKilledWhileItTells: a server that is killed after a webhook receives a message, but before the server knows it, sends the message again with the same
// id.
func TestKilledWhileItTells(t *testing.T) {
	ports, err := freeport.Find(1)
	if err != nil {
		t.Fatal(err)
	}
	s := harness.Start(t, fmt.Sprintf("alerts {\n\t\t\twebhook http://127.0.0.1:%d/\n\t\t\twebhook_secret 0123456789abcdef\n\t\t}", ports[0]))
	killed := make(chan error, 1)
	r := receiver{then: func() { killed <- s.Kill() }}
	r.listen(t, ports[0])
	c, _ := firingAlert(t, s)
	select {
	case err := <-killed:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("no message came")
	}
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	operatorSees(t, s, c.Project, "a message that waits", func(a waitingAlert) bool { return len(a.Waiting) == 0 && a.NotifiedAt != "" })
	if got := r.got(); len(got) != 2 || got[0] != got[1] || got[0] == "" {
		t.Errorf("the receiver got %v, want one id twice", got)
	}
}

// TestPrivateWebhook: the webhook of an alert is not called in the server's network unless the operator allows it. When a reload allows it, the waiting
// message is sent.
func TestPrivateWebhook(t *testing.T) {
	ports, err := freeport.Find(1)
	if err != nil {
		t.Fatal(err)
	}
	s := harness.Start(t)
	var r receiver
	r.listen(t, ports[0])
	c, id := firingAlert(t, s)
	answer := c.Do(t, http.MethodPatch, "alerts/"+id+"/", map[string]any{"webhook_url": fmt.Sprintf("http://localhost:%d/", ports[0])})
	if answer.Status != http.StatusOK {
		t.Fatalf("%d %s", answer.Status, answer.Raw)
	}
	waits := operatorSees(t, s, c.Project, "no try to send a message", func(a waitingAlert) bool { return len(a.Waiting) == 1 && a.Waiting[0].Tries > 0 })
	if len(r.got()) > 0 || !strings.Contains(waits.Waiting[0].LastError, "the address is not public") {
		t.Errorf("%v, %+v", r.got(), waits)
	}
	config, err := os.ReadFile(s.Caddyfile())
	if err != nil {
		t.Fatal(err)
	}
	allowed := strings.Replace(string(config), "\tanalytics {\n", "\tanalytics {\n\t\talerts {\n\t\t\tprivate_webhooks\n\t\t}\n", 1)
	if err := os.WriteFile(s.Caddyfile(), []byte(allowed), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	operatorSees(t, s, c.Project, "a message that waits", func(a waitingAlert) bool { return len(a.Waiting) == 0 && a.NotifiedAt != "" })
	if got := r.got(); len(got) != 1 || got[0] != waits.Waiting[0].ID {
		t.Errorf("the receiver got %v, want %s", got, waits.Waiting[0].ID)
	}
}
