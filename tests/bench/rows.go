package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

const (
	rowCount  = 50_000
	rowRounds = 15
)

// rowSet is a result of rowCount rows, requested both ways.
type rowSet struct {
	name, hogql  string
	server       post // the query route
	clickhouse   post // the same SQL on ClickHouse's HTTP interface
	ours, theirs []float64
}

// post is a request that is sent repeatedly.
type post struct {
	address, body string
	header        http.Header
}

// uncachedRows compares a large uncached result through the server with the same SQL over the HTTP interface of the
// same ClickHouse, in JSONCompact.
func uncachedRows(ctx context.Context, folder string) (goals []goal, err error) {
	engine, err := startEngine(ctx, filepath.Join(folder, "rows-engine"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	client, err := open(folder, "rows", "clickhouse "+engine.DSN(), unlimited)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Server.Stop()) }()
	const columns = "select number, toString(number) as label, number / 3 as third, number % 2 = 0 as even"
	sets := []*rowSet{
		{name: "50,000 rows, last byte", hogql: fmt.Sprintf("%s, number * 2 as twice from numbers(%d) limit %d", columns, rowCount, rowCount)},
		{name: "the same with a column of times", hogql: fmt.Sprintf("%s, toDateTime(number) as time from numbers(%d) limit %d", columns, rowCount, rowCount)},
	}
	for _, s := range sets {
		if err := s.prepare(engine.DSN(), client); err != nil {
			return nil, err
		}
	}
	for range rowRounds {
		for _, s := range sets {
			if err := s.measure(); err != nil {
				return nil, err
			}
		}
	}
	fmt.Printf("%d rows to the last byte, milliseconds, median of %d alternating rounds\n\n", rowCount, rowRounds)
	fmt.Printf("%-34s %10s %12s %8s\n", "", "server", "ClickHouse", "ratio")
	for _, s := range sets {
		a, b := median(s.ours), median(s.theirs)
		fmt.Printf("%-34s %10.1f %12.1f %8.2f\n", s.name, a*1000, b*1000, a/b)
		goals = append(goals, atMost(s.name, "the same SQL over HTTP, JSONCompact", 1.2, a/b))
	}
	fmt.Println()
	return goals, nil
}

// prepare compiles the SQL and checks that both ways return all rows.
func (s *rowSet) prepare(dsn string, client *harness.Client) error {
	compiled, err := compiler.Compile(&query.HogQL{Query: s.hogql}, compiler.Env{
		Database: &schema.Database{Project: client.Project, Location: time.UTC, Layout: schema.NativeLayout()}, Now: time.Now(), Mode: compiler.QueryRoute,
	})
	if err != nil {
		return fmt.Errorf("compiling %q: %w", s.hogql, err)
	}
	address, err := url.Parse(dsn)
	if err != nil {
		return fmt.Errorf("reading the engine's address: %w", err)
	}
	asked := url.Values{"database": {strings.TrimPrefix(address.Path, "/")}, "default_format": {"JSONCompact"}}
	for _, p := range compiled.Params {
		asked.Set("param_"+p.Name, p.Value) // names of zones, without special characters
	}
	address.Path, address.RawQuery = "/", asked.Encode()
	s.clickhouse = post{address: address.String(), body: compiled.SQL}
	body, err := json.Marshal(map[string]any{"query": map[string]any{"kind": "HogQLQuery", "query": s.hogql}, "refresh": "force_blocking"})
	if err != nil {
		return fmt.Errorf("encoding a query: %w", err)
	}
	s.server = post{
		address: fmt.Sprintf("%s/api/projects/%d/query/", client.Server.URL, client.Project), body: string(body),
		header: http.Header{"Authorization": {"Bearer " + client.Key}, "Content-Type": {"application/json"}},
	}
	for _, p := range []post{s.server, s.clickhouse} {
		raw, _, err := p.send()
		if err != nil {
			return err
		}
		var answer struct{ Results, Data []json.RawMessage }
		if err := json.Unmarshal(raw, &answer); err != nil {
			return fmt.Errorf("reading the rows: %w: %.300s", err, raw)
		}
		if got := len(answer.Results) + len(answer.Data); got != rowCount {
			return fmt.Errorf("%d rows, want %d: %.300s", got, rowCount, raw)
		}
	}
	return nil
}

func (s *rowSet) measure() error {
	_, seconds, err := s.server.send()
	if err != nil {
		return err
	}
	s.ours = append(s.ours, seconds)
	if _, seconds, err = s.clickhouse.send(); err != nil {
		return err
	}
	s.theirs = append(s.theirs, seconds)
	return nil
}

// send returns the body, and the seconds until its last byte.
func (p post) send() (body []byte, seconds float64, err error) {
	began := time.Now()
	req, err := http.NewRequest(http.MethodPost, p.address, strings.NewReader(p.body))
	if err != nil {
		return nil, 0, err
	}
	maps.Copy(req.Header, p.header)
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s returned %d: %.500s", req.URL.Redacted(), resp.StatusCode, body)
	}
	return body, time.Since(began).Seconds(), err
}
