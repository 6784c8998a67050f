package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestWriting looks for inserts of projects while one is executed, also with a host that does not answer and in another database.
func TestWriting(t *testing.T) {
	c := client(t)
	of := func(change func(*url.URL)) *clickhouse.Client {
		dsn, err := url.Parse(engine.DSN())
		if err != nil {
			t.Fatal(err)
		}
		change(dsn)
		return openWith(t, clickhouse.Config{DSN: dsn.String(), DialTimeout: 5 * time.Second})
	}
	hosts := of(func(u *url.URL) { u.Host = "127.0.0.1:1," + u.Host })
	elsewhere := of(func(u *url.URL) { u.Path = "/default" })
	away := of(func(u *url.URL) { u.Host = "127.0.0.1:1" })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	p, other := project(), project()
	q := clickhouse.Query{
		SQL: "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))", Project: p, Comment: clickhouse.InsertComment([]int64{1, p}),
	}
	go func() {
		_, err := c.Query(ctx, q, &rows{})
		ended <- err
	}()
	writing := func(c *clickhouse.Client, project int64) bool {
		t.Helper()
		found, err := c.Writing(t.Context(), project, false)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	await := func(want bool) {
		eventually.Is(t, fmt.Sprintf("Writing is %t", want), func() bool { return writing(c, p) == want })
	}
	await(true)
	for name, got := range map[string]bool{
		"several hosts": writing(hosts, p), "another project": !writing(c, other), "another database": !writing(elsewhere, p),
	} {
		if !got {
			t.Errorf("%s: the insert is found, or not", name)
		}
	}
	if _, err := away.Writing(t.Context(), p, false); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("without ClickHouse: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the query: %v", err)
	}
	await(false)
}

// TestWritingOnASilentHost: for a minute, a host that does not answer may be executing an insert whose outcome is unknown. Replicated tables do not
// store it twice.
func TestWritingOnASilentHost(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		fault                harness.Fault
		doubtful, replicated bool
		want                 bool // at first
	}{
		{"in doubt", harness.Silent, true, false, true},
		{"in doubt, and packets are lost", vanishes, true, false, true},
		{"not in doubt", harness.Silent, false, false, false},
		{"replicated", harness.Silent, true, true, false},
		{"the host answers", harness.Works, true, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				idle := func(w http.ResponseWriter, _ *http.Request, sql string) {
					if strings.Contains(sql, "system.processes") {
						send(w, nativeRows([]string{"query_id", "a", "b"}))
						return
					}
					numbers(w, 1)
				}
				first := &fakeHost{answer: idle}
				c, _ := fakeHosts(t, clickhouse.Config{}, first, &fakeHost{answer: idle})
				wake(t, c)
				if tt.replicated {
					c.SetReplicated()
				}
				time.Sleep(time.Hour)
				c.LookAround(t.Context())
				first.set(tt.fault)
				for _, want := range []bool{tt.want, false} {
					if got, err := c.Writing(t.Context(), 1, tt.doubtful); got != want || err != nil {
						t.Errorf("writing is %t, want %t, %v", got, want, err)
					}
					time.Sleep(time.Minute)
				}
			})
		})
	}
}
