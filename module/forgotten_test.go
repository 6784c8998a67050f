package module

import (
	"net/http"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
)

// TestForgottenEndpointIsFreed: the remembered requests of a deleted endpoint do not keep its runs in memory.
func TestForgottenEndpointIsFreed(t *testing.T) {
	w, _ := pagedWorld(t)
	for range 2 { // the second uses the plan of the first
		if answer := w.send(t, http.MethodPost, apitest.MinePath, `{"variables": {"customer": "acme"}, "limit": 2, "offset": 2}`); answer.Code != http.StatusOK {
			t.Fatalf("%d %s", answer.Code, answer.Body)
		}
	}
	e := w.Registry.Snapshot().Endpoint(w.Project.ID, "mine")
	log, _ := w.Logs.Find(e.ID)
	if log == nil {
		t.Fatal("the runs are not remembered")
	}
	freed := make(chan struct{})
	goruntime.AddCleanup(log, func(done chan struct{}) { close(done) }, freed)
	w.rt.forget(e)
	for range 50 {
		goruntime.GC()
		select {
		case <-freed:
			goruntime.KeepAlive(w.Plans)
			return
		case <-time.After(20 * time.Millisecond): // cleanups run in a goroutine of their own
		}
	}
	t.Error("the runs stay in memory")
}
