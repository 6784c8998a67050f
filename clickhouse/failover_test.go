package clickhouse_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestMoveTakesASecond: a query gets its answer from another host within a second after its host dies, however it dies. The time is that of a
// synctest bubble, so it does not depend on the machine.
func TestMoveTakesASecond(t *testing.T) {
	const never, idle, running = "never asked", "idle", "running the query"
	for _, fault := range []struct {
		name string
		is   harness.Fault
	}{{"refuses", harness.Refuses}, {"is silent", harness.Silent}, {"vanishes", vanishes}} {
		for _, before := range []string{never, idle, running} {
			t.Run(before+", then "+fault.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began := make(chan struct{})
					first := &fakeHost{answer: func(w http.ResponseWriter, r *http.Request, sql string) {
						if strings.Contains(sql, "'slow'") {
							close(began)
							<-r.Context().Done() // never on its own
							return
						}
						numbers(w, 1)
					}}
					second := &fakeHost{answer: func(w http.ResponseWriter, _ *http.Request, _ string) { numbers(w, 2) }}
					c, _ := fakeHosts(t, clickhouse.Config{}, first, second)
					if before != never {
						if got := ask(t, c, 1, "SELECT 1"); got[0] != "[1]" {
							t.Fatalf("the first host answers %v", got)
						}
					}
					answered := make(chan []string)
					if before == running {
						go func() { answered <- ask(t, c, 1, "SELECT 'slow'") }()
						<-began
						time.Sleep(30 * time.Second) // the query is not moved while its host answers pings
					}
					first.set(fault.is)
					died := time.Now()
					if before != running {
						go func() { answered <- ask(t, c, 1, "SELECT 1") }()
					}
					if got := <-answered; got[0] != "[2]" {
						t.Errorf("the answer is %v, want that of the second host", got)
					}
					took := time.Since(died)
					t.Logf("the answer came after %s", took)
					if took > time.Second {
						t.Error("that is more than a second")
					}
					if c.Moved() != 1 {
						t.Errorf("%d queries were moved", c.Moved())
					}
				})
			})
		}
	}
}
