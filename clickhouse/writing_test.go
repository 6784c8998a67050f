package clickhouse_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// TestWriting looks for inserts of projects while one is executed, also with a host that does not answer, and in another database.
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
		found, err := c.Writing(t.Context(), project)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	await := func(want bool) {
		for deadline := time.Now().Add(patience); writing(c, p) != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("Writing is not %t", want)
			}
		}
	}
	await(true)
	for name, got := range map[string]bool{
		"several hosts": writing(hosts, p), "another project": !writing(c, other), "another database": !writing(elsewhere, p),
	} {
		if !got {
			t.Errorf("%s: the insert is found, or not", name)
		}
	}
	if _, err := away.Writing(t.Context(), p); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("without ClickHouse: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the query: %v", err)
	}
	await(false)
}
