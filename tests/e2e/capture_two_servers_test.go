package e2e_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestCaptureNewToken sends events to one server with tokens that another server on the same registry has just made, while unknown ones keep arriving:
// none of the new tokens is refused, and all unknown ones are.
func TestCaptureNewToken(t *testing.T) {
	place := "registry sqlite:" + filepath.Join(t.TempDir(), "registry.db")
	first := harness.Start(t, "clickhouse http://127.0.0.1:1/default", place)
	second := harness.Start(t, "clickhouse http://127.0.0.1:1/default", place)
	send := func(token string) int {
		body := fmt.Sprintf(`{"api_key":%q,"event":"seen","distinct_id":"u"}`, token)
		answer, err := http.Post(second.URL+"/e/", "application/json", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = answer.Body.Close() // only the status matters
		return answer.StatusCode
	}
	config := func(token string) int {
		answer, err := http.Get(second.URL + "/array/" + token + "/config")
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = answer.Body.Close() // only the status matters
		return answer.StatusCode
	}
	stop := make(chan struct{})
	var hostile sync.WaitGroup
	for n := range 4 {
		hostile.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if status := send(fmt.Sprintf("phc_hostile_%020d_%d", i, n)); status != http.StatusUnauthorized {
					t.Errorf("an unknown token: %d", status)
					return
				}
			}
		})
	}
	id, _ := first.Project(t, "new")
	for n := range 8 {
		var list struct {
			Tokens []struct{ Token string }
		}
		if err := first.Ask(fmt.Sprintf("/analytics/projects/%d/tokens", id), struct{}{}, &list); err != nil {
			t.Fatal(err)
		}
		token := list.Tokens[0].Token
		ask := func() int { return send(token) }
		if n%2 == 0 {
			ask = func() int { return config(token) }
		}
		if status := ask(); status != http.StatusOK {
			t.Errorf("new token %d: %d", n, status)
		}
	}
	close(stop)
	hostile.Wait()
}
