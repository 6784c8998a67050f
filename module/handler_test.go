package module

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestOtherPaths: paths outside the API go to the next handler.
func TestOtherPaths(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]int{"/": 418, "/api": 418, "/apis/x": 418, "/api/": 404, "/api/users/": 404, "/api/teams/1/": 404} {
		if answer := w.send(t, http.MethodGet, path, ""); answer.Code != want {
			t.Errorf("%s answers %d, want %d", path, answer.Code, want)
		}
	}
}

// TestNotStartedYet: a listener may be open before the app has started. Callers that leave in the meantime are released.
func TestNotStartedYet(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		app := &App{started: make(chan struct{})}
		early := &world{Handler: &Handler{app: app, logger: w.logger}, World: w.World}
		const path = "/api/projects/@current/endpoints/"
		answered := make(chan int, 1)
		go func() { answered <- early.send(t, http.MethodGet, path, "").Code }()
		gone, leave := context.WithCancel(t.Context())
		left := make(chan int, 1)
		go func() {
			answer := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(gone, http.MethodGet, path, http.NoBody)
			if err := early.ServeHTTP(answer, r, nil); err != nil {
				t.Error(err)
			}
			left <- answer.Code
		}()
		synctest.Wait()
		if len(answered) != 0 || len(left) != 0 {
			t.Error("answered before the start")
		}
		leave()
		if code := <-left; code != api.StatusClientGone {
			t.Errorf("a caller that left is answered %d", code)
		}
		app.runtime.Store(w.rt)
		close(app.started)
		if code := <-answered; code != http.StatusOK {
			t.Errorf("answered %d after the start", code)
		}
	})
}

// TestFlagDefinitions: at both paths, SDKs with a personal key get no flags, and the existing group types.
func TestFlagDefinitions(t *testing.T) {
	w := newWorld(t)
	if err := w.Registry.Learn(t.Context(), w.Project.ID, nil, []registry.GroupType{{Name: "company", Index: 0}}); err != nil {
		t.Fatal(err)
	}
	_, sdk := w.NewKey(t, w.Project.ID, registry.Personal, "feature_flag:read")
	_, other := w.NewKey(t, w.Project.ID, registry.Personal, "query:read")
	_, secret := w.NewKey(t, w.Project.ID, registry.Secret, "feature_flag:read")
	for _, path := range []string{"/api/feature_flag/local_evaluation/?token=phc_x&send_cohorts", "/api/feature_flag/local_evaluation", "/flags/definitions?token=phc_x&send_cohorts", "/flags/definitions/"} {
		answer := w.send(t, http.MethodGet, path, "", "Authorization", "Bearer "+sdk)
		if got := strings.TrimSpace(answer.Body.String()); answer.Code != http.StatusOK || got != `{"cohorts":{},"flags":[],"group_type_mapping":{"0":"company"}}` {
			t.Errorf("%s: %d %s", path, answer.Code, got)
		}
		for key, want := range map[string]int{other: http.StatusForbidden, secret: http.StatusUnauthorized, "phc_x": http.StatusUnauthorized} {
			if answer := w.send(t, http.MethodGet, path, "", "Authorization", "Bearer "+key); answer.Code != want {
				t.Errorf("%s with another key: %d %s, want %d", path, answer.Code, answer.Body, want)
			}
		}
	}
	if answer := w.send(t, http.MethodGet, "/flags/definitions/more", "", "Authorization", "Bearer "+sdk); answer.Code != http.StatusTeapot { // from the next handler
		t.Errorf("below it: %d %s", answer.Code, answer.Body)
	}
}
