package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/freeport"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// bodyTarget is the approximate length of the response, in bytes.
const bodyTarget = 2048

// cachedBench says how often and how long each load is measured.
type cachedBench struct {
	rounds, seconds int // of one load
}

// cachedRow is a row of the table: an endpoint's cached run against another server with a body of the same length. Caddy's respond answers the same POST,
// in the same configuration.
type cachedRow struct {
	name        string
	connections int
	against     string // the other server: respond or chproxy
	other       *rival
	run         *rival
	load        func(folder string, r *rival, shape loadShape) (measured, error)
	before      func() error                // runs first; nil for nothing
	around      func() (after func() error) // starts what else happens during a load; nil for nothing
	goal        float64                     // for the ratio of requests per second; 0 for none
	slowest     bool                        // the 99th percentile has a goal too
}

// ratio returns the run's requests per second divided by those of the other server.
func (row *cachedRow) ratio() float64 { return row.run.persecond() / row.other.persecond() }

// measure compares a cached run with Caddy's respond, in several configurations, and with chproxy.
func (b *cachedBench) measure(ctx context.Context, folder string) (goals []goal, err error) {
	if err := errors.Join(needs("wrk", "wrk"), needs("h2load", "nghttp2-client")); err != nil {
		return nil, err
	}
	client, err := open(folder, "cached", unlimited)
	if err != nil {
		return nil, err
	}
	server := client.Server
	defer func() { err = errors.Join(err, server.Stop()) }()
	if err := publish(client); err != nil {
		return nil, err
	}
	body, err := warm(client)
	if err != nil {
		return nil, err
	}
	sites, err := serveRivals(server, len(body))
	if err != nil {
		return nil, err
	}
	plain, err := servePlain(folder, len(body))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plain.stop()) }()
	insight, err := addInsights(client)
	if err != nil {
		return nil, err
	}
	if body, err = warm(client); err != nil {
		return nil, err
	}
	proxy, err := serveChproxy(ctx, folder, len(body))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, proxy.stop()) }()
	var rows []*cachedRow
	// again returns a rival with the same requests, without measurements.
	again := func(name, url string) *rival {
		pid := server.PID()
		if url == plain.url {
			pid = plain.cmd.Process.Pid
		}
		return &rival{name: name, url: url, header: cachedRun(client).header, pid: pid}
	}
	add := func(row cachedRow, respond, run string) {
		row.against, row.other, row.run = "respond", again(row.name+", respond", respond), again(row.name+", cached run", run)
		rows = append(rows, &row)
	}
	path := strings.TrimPrefix(cachedRun(client).url, server.URL)
	for _, connections := range []int{16, 64, 256} {
		add(cachedRow{name: "HTTP/1.1", connections: connections, load: wrk, goal: 1, slowest: connections == 16}, sites.respond, server.URL+path)
	}
	for _, connections := range []int{16, 64, 256} {
		add(cachedRow{name: "HTTP/1.1, a Caddy without this app", connections: connections, load: wrk, goal: 1, slowest: connections == 16}, plain.url, server.URL+path)
	}
	add(cachedRow{name: "HTTP/2 over TLS", connections: 16, load: h2load, goal: 1, slowest: true}, sites.secureRespond, sites.secure+path)
	add(cachedRow{name: "HTTP/3", connections: 16, load: http3Load(sites.trust), goal: 1, slowest: true}, sites.secureRespond, sites.secure+path)
	var written int
	var wrote time.Duration
	add(cachedRow{
		name: fmt.Sprintf("HTTP/1.1, %d writes a second", writesPerSecond), connections: 16, load: wrk, goal: 0.95,
		around: func() func() error {
			began, stop := time.Now(), writing(client, insight)
			return func() error {
				n, err := stop()
				written, wrote = written+n, wrote+time.Since(began)
				return err
			}
		},
	}, sites.respond, server.URL+path)
	rows = append(rows, &cachedRow{
		name: "HTTP/1.1", connections: 16, load: wrk, goal: 2.2, against: "chproxy", run: again("HTTP/1.1, cached run", server.URL+path),
		other: &rival{name: "chproxy", url: proxy.url, get: true, pid: proxy.cmd.Process.Pid},
	})
	// Last, because metrics count the requests of all sites.
	add(cachedRow{
		name: "HTTP/1.1, access log, metrics and tracing", connections: 16, load: wrk, goal: 1, slowest: true,
		before: func() error { return addMetrics(server) },
	}, sites.loggedRespond, sites.logged+path)

	fmt.Printf("A cached run, %d bytes, against respond with as many bytes and no placeholders, or chproxy with as many in its file cache:\n"+
		"requests a second, the 99th percentile in ms, and the processor time of the server for a request in µs. Medians of %d alternating rounds of %d s\n\n", len(body), b.rounds, b.seconds)
	fmt.Printf("%-42s %-8s %11s %9s %8s %6s %10s %8s %6s %9s %7s %6s\n", "", "against", "connections", "its/s", "run/s", "ratio", "its p99", "run p99", "ratio",
		"its µs", "run µs", "ratio")
	for _, row := range rows {
		if err := row.measure(b, folder, row.other, row.run); err != nil {
			return nil, err
		}
		slower := row.run.p99() / row.other.p99()
		fmt.Printf("%-42s %-8s %11d %9.0f %8.0f %6.2f %10.2f %8.2f %6.2f %9.1f %7.1f %6.2f\n", row.name, row.against, row.connections, row.other.persecond(),
			row.run.persecond(), row.ratio(), row.other.p99(), row.run.p99(), slower,
			row.other.processor(), row.run.processor(), row.run.processor()/row.other.processor())
		against := fmt.Sprintf("%s, %d connections", row.against, row.connections)
		goals = append(goals, atLeast("run/s, "+row.name, against, row.goal, row.ratio()))
		if row.slowest {
			goals = append(goals, atMost("p99, "+row.name, against, 1, slower))
		}
	}
	fmt.Printf("\n%.0f writes a second took place, of %d insights\n\n", float64(written)/wrote.Seconds(), writtenInsights)
	return goals, nil
}

// measure loads rivals in turn, so that noise affects all alike.
func (row *cachedRow) measure(b *cachedBench, folder string, rivals ...*rival) error {
	if row.before != nil {
		if err := row.before(); err != nil {
			return err
		}
	}
	for range b.rounds {
		for _, r := range rivals {
			after := func() error { return nil }
			if row.around != nil {
				after = row.around()
			}
			m, err := row.loadOnce(folder, r, loadShape{row.connections, b.seconds})
			if err = errors.Join(err, after()); err != nil {
				return err
			}
			r.measured = append(r.measured, m)
		}
	}
	return nil
}

// loadOnce loads a rival once.
func (row *cachedRow) loadOnce(folder string, r *rival, shape loadShape) (m measured, err error) {
	var before, now time.Duration
	if r.pid != 0 {
		if before, err = harness.ProcessorTime(r.pid); err != nil {
			return m, err
		}
	}
	if m, err = row.load(folder, r, shape); err != nil || r.pid == 0 {
		return m, err
	}
	now, err = harness.ProcessorTime(r.pid)
	m.processor = time.Duration(float64(now-before) / (m.persecond * float64(shape.seconds)))
	return m, err
}

// cachedRun returns the endpoint that publish creates.
func cachedRun(client *harness.Client) *rival {
	return &rival{
		name: "cached endpoint run", url: fmt.Sprintf("%s/api/projects/%d/endpoints/bench/run", client.Server.URL, client.Project),
		header: map[string]string{"Authorization": "Bearer " + client.Key, "Content-Type": "application/json"},
	}
}

// publish creates an endpoint with a response of about bodyTarget bytes.
func publish(client *harness.Client) error {
	query := "select number as position, concat('row number ', toString(number)) as label, number * 1.5 as value from numbers(52)"
	answer, err := client.Send(http.MethodPost, "endpoints/", map[string]any{
		"name": "bench", "query": map[string]any{"kind": "HogQLQuery", "query": query}, "data_freshness_seconds": 24 * 60 * 60,
	})
	return checked("publishing", answer, err, http.StatusCreated)
}

// runBody is the body of every load request.
const runBody = `{"limit":100}`

// warm runs the endpoint until it is served from the cache, and returns the body.
func warm(client *harness.Client) ([]byte, error) {
	for range 100 {
		answer, err := client.Send(http.MethodPost, "endpoints/bench/run", runBody)
		if err := checked("running", answer, err, http.StatusOK); err != nil {
			return nil, err
		}
		if strings.Contains(answer.Header.Get("Cache-Status"), "; hit") {
			if n := len(answer.Raw); n < bodyTarget*3/4 || n > bodyTarget*5/4 {
				return nil, fmt.Errorf("the response has %d bytes, want about %d", n, bodyTarget)
			}
			return answer.Raw, nil
		}
	}
	return nil, errors.New("the run was never served from the cache")
}

// rivalSites are the sites besides that of the harness: one with respond and one with the API in each configuration.
type rivalSites struct {
	respond               string // HTTP/1.1
	secure, secureRespond string // TLS, HTTP/2 and HTTP/3
	logged, loggedRespond string // an access log, and tracing
	trust                 *tls.Config
}

// respondSite returns a site with only a body of length bytes. It has no placeholders, as Caddy looks for each brace in every request, and does not look
// like JSON, which Caddy would check.
func respondSite(length int) string { return "respond `" + strings.Repeat("x", length) + "`" }

// serveRivals reloads the config with sites for all rows.
func serveRivals(server *harness.Server, length int) (*rivalSites, error) {
	ports, err := freeport.Find(5)
	if err != nil {
		return nil, err
	}
	at := func(scheme string, i int) string { return fmt.Sprintf("%s://localhost:%d", scheme, ports[i]) }
	sites := &rivalSites{respond: at("http", 0), secure: at("https", 1), secureRespond: at("https", 2), logged: at("http", 3), loggedRespond: at("http", 4)}
	host := func(url string) string { _, rest, _ := strings.Cut(url, "://"); return rest }
	if sites.trust, err = server.Secure(map[string]string{host(sites.secure): "analytics", host(sites.secureRespond): respondSite(length)}); err != nil {
		return nil, err
	}
	config, err := os.ReadFile(server.Caddyfile())
	if err != nil {
		return nil, fmt.Errorf("reading the Caddyfile: %w", err)
	}
	// A rolled log is compressed in the background, which slows down the server measured at that time more than anything else.
	log := fmt.Sprintf("log {\n\toutput file %s {\n\t\troll_disabled\n\t}\n}\ntracing\n", filepath.Join(server.Folder, "access.log"))
	whole := fmt.Sprintf("%s\n%s {\n%s\n}\n%s {\n%s%s\n}\n%s {\n%sanalytics\n}\n", config, sites.respond, respondSite(length),
		sites.loggedRespond, log, respondSite(length), sites.logged, log)
	if err := os.WriteFile(server.Caddyfile(), []byte(whole), 0o600); err != nil {
		return nil, fmt.Errorf("writing the Caddyfile: %w", err)
	}
	if err := server.Reload(); err != nil {
		return nil, err
	}
	return sites, errors.Join(answers(sites.respond, length), answers(sites.loggedRespond, length))
}

// addMetrics reloads the config with metrics of the HTTP servers.
func addMetrics(server *harness.Server) error {
	config, err := os.ReadFile(server.Caddyfile())
	if err != nil {
		return fmt.Errorf("reading the Caddyfile: %w", err)
	}
	counted := bytes.Replace(config, []byte("\tanalytics {"), []byte("\tmetrics\n\tanalytics {"), 1)
	if err := os.WriteFile(server.Caddyfile(), counted, 0o600); err != nil {
		return fmt.Errorf("writing the Caddyfile: %w", err)
	}
	return server.Reload()
}

// answers checks that a site answers a POST with a body of length bytes.
func answers(url string, length int) error {
	resp, err := http.Post(url, "application/json", strings.NewReader(runBody))
	if err != nil {
		return fmt.Errorf("requesting respond: %w", err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err := checked("requesting respond", harness.Answer{Status: resp.StatusCode, Raw: got}, err, http.StatusOK); err != nil {
		return err
	}
	if !bytes.Equal(got, bytes.Repeat([]byte("x"), length)) {
		return fmt.Errorf("respond answers with %d bytes, want %d of x", len(got), length)
	}
	return nil
}

// plainCaddy is a Caddy process without this app.
type plainCaddy struct {
	url string
	cmd *exec.Cmd
}

// servePlain starts the same program with respond only.
func servePlain(folder string, length int) (*plainCaddy, error) {
	binary, err := harness.Binary()
	if err != nil {
		return nil, err
	}
	ports, err := freeport.Find(1)
	if err != nil {
		return nil, err
	}
	p := &plainCaddy{url: fmt.Sprintf("http://localhost:%d", ports[0])}
	path := filepath.Join(folder, "plain.Caddyfile")
	config := fmt.Sprintf("{\n\tadmin off\n\tauto_https off\n\tpersist_config off\n}\n%s {\n%s\n}\n", p.url, respondSite(length))
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("writing the Caddyfile: %w", err)
	}
	p.cmd = exec.Command(binary, "run", "--config", path, "--adapter", "caddyfile")
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting Caddy: %w", err)
	}
	for range 200 {
		if err = answers(p.url, length); err == nil {
			return p, nil
		}
		<-time.After(50 * time.Millisecond)
	}
	return nil, errors.Join(err, p.stop())
}

func (p *plainCaddy) stop() error { return terminate(p.cmd) }

// terminate ends a process that was started, and waits for it.
func terminate(cmd *exec.Cmd) error {
	err := cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait() // ended by the signal
	return err
}
