package people_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestCancelledListOfPeople: a caller that names its list of people can cancel it by that name.
func TestCancelledListOfPeople(t *testing.T) {
	w := apitest.New(t)
	w.LoseTables(t, schema.NativeLayout())
	_, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "person:read", "query:read")
	w.Places = admission.New(admission.Limits{Places: 1, Project: 1, Queue: 1})
	place, err := w.Places.Enter(t.Context(), admission.Request{Project: w.Project.ID})
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan *httptest.ResponseRecorder, 1)
	go func() { answered <- w.Send(t, http.MethodGet, "/api/projects/1/persons/?client_query_id=mine", "") }()
	until := time.Now().Add(10 * time.Second)
	for len(answered) == 0 {
		if got := apitest.FieldOf(t, w.Send(t, http.MethodDelete, "/api/projects/1/query/mine/", ""), "message"); got == "The query was cancelled." {
			break
		}
		if time.Now().After(until) {
			t.Error("the list is not known by its name")
			place.Leave() // it goes on, and fails without ClickHouse
			break
		}
		runtime.Gosched()
	}
	if got := <-answered; got.Code != http.StatusBadRequest || apitest.FieldOf(t, got, "code") != "query_was_cancelled" {
		t.Errorf("answered %d %s", got.Code, got.Body)
	}
}
