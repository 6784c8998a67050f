package e2e_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/quic-go/quic-go/http3"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// publish makes an endpoint for a query.
func publish(t *testing.T, c *harness.Client, name, query string) {
	t.Helper()
	answer := c.Do(t, http.MethodPost, "endpoints/", map[string]any{"name": name, "query": map[string]any{"kind": "HogQLQuery", "query": query}})
	if answer.Status != http.StatusCreated {
		t.Fatalf("publishing %s: %d %s", name, answer.Status, answer.Raw)
	}
}

// table is a query with cells of the types that formats write in their own ways.
const table = `select number as n, if(number = 1, null, concat('a,"', toString(number))) as s, toDateTime('2026-01-02 03:04:05') as t,
	[number, 1] as l, number / 4 as f from numbers(5) where number > 0 order by n`

func TestExportForms(t *testing.T) {
	c := newProject(t)
	publish(t, c, "table", table)
	csv := []string{
		"n,s,t,l,f", `1,,2026-01-02T03:04:05Z,"[1,1]",0.25`, `2,"a,""2",2026-01-02T03:04:05Z,"[2,1]",0.5`,
		`3,"a,""3",2026-01-02T03:04:05Z,"[3,1]",0.75`, `4,"a,""4",2026-01-02T03:04:05Z,"[4,1]",1`,
	}
	lines := func(which ...int) (text string) {
		for _, i := range which {
			text += csv[i] + "\r\n"
		}
		return text
	}
	tests := []struct{ name, path, body, want string }{
		{"CSV", "run.csv", "{}", lines(0, 1, 2, 3, 4)},
		{"a page of CSV", "run.csv", `{"limit": 2, "offset": 1}`, lines(0, 2, 3)},
		{"a page beyond the end", "run.csv", `{"limit": 2, "offset": 9}`, lines(0)},
		{"a field that asks for CSV", "run?format=csv&limit=1", "{}", lines(0, 1)},
		{"NDJSON", "run.ndjson", `{"limit": 2}`, `{"n":1,"s":null,"t":"2026-01-02T03:04:05Z","l":[1,1],"f":0.25}` + "\n" +
			`{"n":2,"s":"a,\"2","t":"2026-01-02T03:04:05Z","l":[2,1],"f":0.5}` + "\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer := c.Do(t, http.MethodPost, "endpoints/table/"+tt.path, tt.body)
			if answer.Status != http.StatusOK {
				t.Fatalf("%d %s", answer.Status, answer.Raw)
			}
			if diff := cmp.Diff(tt.want, string(answer.Raw)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("headers", func(t *testing.T) {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			answer := c.Do(t, method, "endpoints/table/run.csv", nil)
			got := [...]string{answer.Header.Get("Content-Type"), answer.Header.Get("Content-Disposition"), answer.Header.Get("Cache-Control")}
			want := [...]string{"text/csv; charset=utf-8; header=present", `attachment; filename="table.csv"`, "no-store"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", method, diff)
			}
		}
	})
	t.Run("the query's own LIMIT is a ceiling", func(t *testing.T) {
		publish(t, c, "limited", "select number as n from numbers(100) order by n limit 3 offset 10")
		for body, want := range map[string]string{"{}": "n\r\n10\r\n11\r\n12\r\n", `{"limit": 5, "offset": 2}`: "n\r\n12\r\n"} {
			if answer := c.Do(t, http.MethodPost, "endpoints/limited/run.csv", body); string(answer.Raw) != want {
				t.Errorf("%s: %q, want %q", body, answer.Raw, want)
			}
		}
	})
	t.Run("more rows than a JSON answer has", func(t *testing.T) {
		publish(t, c, "many", "select number as n from numbers(60001)")
		if answer := c.Do(t, http.MethodGet, "endpoints/many/run.csv", nil); bytes.Count(answer.Raw, []byte("\r\n")) != 60_002 {
			t.Errorf("%d lines", bytes.Count(answer.Raw, []byte("\r\n")))
		}
		publish(t, c, "both", "select number as n from numbers(150) union all select number from numbers(150)")
		if answer := c.Do(t, http.MethodGet, "endpoints/both/run.ndjson", nil); bytes.Count(answer.Raw, []byte("\n")) != 300 {
			t.Errorf("a union: %d lines", bytes.Count(answer.Raw, []byte("\n")))
		}
	})
	t.Run("files of ClickHouse's own", func(t *testing.T) {
		for _, tt := range []struct{ path, begin, end string }{
			{"many/run.parquet", "PAR1", "PAR1"},
			{"many/run.arrow", "\xff\xff\xff\xff", "\xff\xff\xff\xff\x00\x00\x00\x00"},
			{"table/run.arrow?limit=1&offset=9", "\xff\xff\xff\xff", "\xff\xff\xff\xff\x00\x00\x00\x00"},
		} {
			answer := c.Do(t, http.MethodGet, "endpoints/"+tt.path, nil)
			if answer.Status != http.StatusOK || !bytes.HasPrefix(answer.Raw, []byte(tt.begin)) || !bytes.HasSuffix(answer.Raw, []byte(tt.end)) {
				t.Errorf("%s: %d, %d bytes: %.200q", tt.path, answer.Status, len(answer.Raw), answer.Raw)
			}
		}
	})
	t.Run("a mistake is an answer of the API", func(t *testing.T) {
		publish(t, c, "divides", "select intDiv(1, number) as n from numbers(3)")
		publish(t, c, "union", "select 1 as n union all select 2")
		for _, tt := range []struct{ path, body, code, attr string }{
			{"table/run.csv", `{"variables": {"x": 1}}`, "invalid_input", "variables"},
			{"table/run.parquet", `{"offset": 1}`, "invalid_input", ""},
			{"union/run.csv", `{"limit": 1}`, "invalid_input", "limit"},
			{"divides/run.csv", "{}", "illegal_division", ""},
			{"divides/run.ndjson", "{}", "illegal_division", ""},
			{"divides/run.parquet", "{}", "illegal_division", ""},
			{"divides/run.arrow", "{}", "illegal_division", ""},
		} {
			answer := c.Do(t, http.MethodPost, "endpoints/"+tt.path, tt.body)
			attr, _ := answer.Body["attr"].(string)
			if answer.Status != http.StatusBadRequest || answer.Body["code"] != tt.code || attr != tt.attr || answer.Header.Get("Content-Disposition") != "" {
				t.Errorf("%s: %d %s", tt.path, answer.Status, answer.Raw)
			}
		}
	})
}

// TestExportTenancy exports all events of a project while another project has events too.
func TestExportTenancy(t *testing.T) {
	mine, theirs := newProject(t), newProject(t)
	importLines(t, mine, `{"event":"mine","distinct_id":"a","timestamp":"2026-01-01T00:00:00Z","properties":{}}`)
	importLines(t, theirs, `{"event":"theirs","distinct_id":"b","timestamp":"2026-01-01T00:00:00Z","properties":{}}`)
	publish(t, mine, "events", "select event, distinct_id from events")
	for _, format := range []string{"csv", "ndjson", "parquet", "arrow"} {
		answer := mine.Do(t, http.MethodGet, "endpoints/events/run."+format, nil)
		if answer.Status != http.StatusOK || !bytes.Contains(answer.Raw, []byte("mine")) || bytes.Contains(answer.Raw, []byte("theirs")) {
			t.Errorf("%s: %d %q", format, answer.Status, answer.Raw)
		}
		if answer := theirs.Do(t, http.MethodGet, "endpoints/events/run."+format, nil); answer.Status != http.StatusNotFound {
			t.Errorf("%s of the other project: %d %q", format, answer.Status, answer.Raw)
		}
	}
}

// TestExportBreaks fails in the middle of an export: in each HTTP version the client gets an error, never a regular end.
func TestExportBreaks(t *testing.T) {
	s := harness.Start(t)
	id, key := s.Project(t, "broken")
	publish(t, s.Client(id, key), "broken", "select number as n, intDiv(10, number - 3000000) as q from numbers(5000000)")
	url, trust, _ := secured(t, s)
	h1 := &http.Transport{TLSClientConfig: trust, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
	h2 := &http.Transport{TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: true}
	h3 := &http3.Transport{TLSClientConfig: trust.Clone()}
	t.Cleanup(func() { _ = h3.Close() })
	for protocol, transport := range map[string]http.RoundTripper{"HTTP/1.1": h1, "HTTP/2.0": h2, "HTTP/3.0": h3} {
		for _, format := range []string{"csv", "ndjson", "arrow", "parquet"} {
			t.Run(protocol+" "+format, func(t *testing.T) {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s/api/projects/%d/endpoints/broken/run.%s", url, id, format), nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+key)
				resp, err := transport.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				if resp.StatusCode != http.StatusOK || resp.Proto != protocol || len(body) < 1<<20 {
					t.Fatalf("%s %d, %d bytes: %.200q; the failure should come late", resp.Proto, resp.StatusCode, len(body), body)
				}
				if err == nil {
					t.Errorf("%d bytes and a clean end", len(body))
				}
				if bytes.Contains(body, []byte("DB::Exception")) {
					t.Error("the engine's message was passed on")
				}
			})
		}
	}
	if log := s.Log(); !strings.Contains(log, "an export broke off") || !strings.Contains(log, "illegal_division") {
		t.Errorf("the log tells nothing:\n%s", log)
	}
}

// TestExportMemory: a large export uses little memory in the server and its engine, in every format.
func TestExportMemory(t *testing.T) {
	s := harness.Start(t)
	id, key := s.Project(t, "large")
	c := s.Client(id, key)
	publish(t, c, "large", "select number as n, concat('a line of text, number ', toString(number)) as text from numbers(6000000)")
	publish(t, c, "small", "select 1 as n")
	formats := map[string]int64{"csv": 200 << 20, "ndjson": 200 << 20, "arrow": 40 << 20, "parquet": 5 << 20} // the least that they take
	for format := range formats {
		c.Do(t, http.MethodGet, "endpoints/small/run."+format, nil)
	}
	idle, err := s.Rest()
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no /proc here")
	}
	if err != nil {
		t.Fatal(err)
	}
	for format, least := range formats {
		if _, err := s.Rest(); err != nil {
			t.Fatal(err)
		}
		size, err := c.Drain("endpoints/large/run." + format)
		if err != nil || size < least {
			t.Errorf("%s: %d bytes, %v", format, size, err)
		}
		peak, err := s.Peak()
		if err != nil {
			t.Fatal(err)
		}
		// The engine uses about 40 MB; before results came in small pieces and Parquet in small row groups, it used up to 500.
		grown := peak.Sub(idle)
		if grown.Server > 64<<20 || grown.Engine > 128<<20 {
			t.Errorf("%s of %d MB took %d MB of memory in the server, %d MB in the engine", format, size>>20, grown.Server>>20, grown.Engine>>20)
		}
	}
}
