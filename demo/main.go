// Command demo serves a demo project on http://localhost:8080. It starts the server and, on the first run, creates a
// project of real events with two keys, two endpoints, two actions, two cohorts and an insight of each kind. When it stops, it stops
// the server.
//
// The server logs to a file, so that the keys stay visible in the terminal.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	config = "demo/Caddyfile"
	events = "demo/commits.ndjson.gz"
)

// settings are the values of the command-line flags.
type settings struct {
	server      string // the server's binary
	folder      string // for all files of the demo
	port, admin int
}

func (s *settings) site() string         { return fmt.Sprintf("http://localhost:%d", s.port) }
func (s *settings) adminAddress() string { return fmt.Sprintf("localhost:%d", s.admin) }
func (s *settings) stateFile() string    { return filepath.Join(s.folder, "demo.json") }
func (s *settings) logFile() string      { return filepath.Join(s.folder, "server.log") }

// demo is the state kept between runs. It has the keys because the server shows them only once.
type demo struct {
	Project     int64  `json:"project"`
	PersonalKey string `json:"personal_key"`
	SecretKey   string `json:"secret_key"`

	captureToken string // asked at each start: it may have been rotated
	Ready        bool   `json:"ready"`

	settings *settings
}

func main() {
	var s settings
	flag.StringVar(&s.server, "server", "bin/caddy", "the server's `binary`")
	flag.StringVar(&s.folder, "folder", ".demo", "the `folder` for all files of the demo")
	flag.IntVar(&s.port, "port", 8080, "the port of the site")
	flag.IntVar(&s.admin, "admin-port", 2019, "the port of Caddy's admin API")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := s.run(ctx)
	stopped := ctx.Err() != nil
	stop()
	if err != nil && !stopped {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func (s *settings) run(ctx context.Context) error {
	if err := s.checkPorts(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return fmt.Errorf("creating the demo's folder: %w", err)
	}
	log, err := os.Create(s.logFile())
	if err != nil {
		return fmt.Errorf("opening the server's log: %w", err)
	}
	defer log.Close()
	fmt.Printf("Starting the server on %s; its log is %s.\n", s.site(), s.logFile())
	caddy := exec.Command(s.server, "run", "--config", config, "--adapter", "caddyfile")
	caddy.Stdout, caddy.Stderr = log, log
	caddy.Env = s.environment()
	caddy.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that Ctrl-C reaches only this process
	if err := caddy.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", s.server, err)
	}
	ended := make(chan struct{})
	var status error // the server's; set when ended is closed
	go func() {
		status = caddy.Wait()
		close(ended)
	}()
	defer func() {
		_ = caddy.Process.Signal(syscall.SIGTERM) // it may have ended already
		<-ended
	}()
	if err := s.waitReady(ctx, ended); err != nil {
		return s.explain(err)
	}
	d, err := s.prepare(ctx)
	if err != nil {
		return s.explain(err)
	}
	if d.captureToken, err = s.captureToken(ctx, d.Project); err != nil {
		return s.explain(err)
	}
	link, err := s.consoleLink(ctx, d.Project)
	if err != nil {
		return s.explain(err)
	}
	d.print(link)
	select {
	case <-ctx.Done():
		return nil
	case <-ended:
		return s.explain(fmt.Errorf("the server stopped: %w", status))
	}
}

// environment returns the server's environment. It puts Caddy's own folders inside the demo's, so that the demo does not
// interfere with other Caddy instances of the user.
func (s *settings) environment() []string {
	folder := s.folder
	if absolute, err := filepath.Abs(folder); err == nil {
		folder = absolute
	}
	return append(os.Environ(),
		"DEMO_PORT="+strconv.Itoa(s.port), "DEMO_ADMIN_PORT="+strconv.Itoa(s.admin), "DEMO_FOLDER="+folder,
		"XDG_CONFIG_HOME="+filepath.Join(folder, "caddy"), "XDG_DATA_HOME="+filepath.Join(folder, "caddy"))
}

// explain adds the end of the server's log to an error.
func (s *settings) explain(err error) error {
	raw, readErr := os.ReadFile(s.logFile())
	if readErr != nil || len(raw) == 0 {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	const most = 12
	return fmt.Errorf("%w\n\nThe end of %s:\n\n%s", err, s.logFile(), strings.Join(lines[max(0, len(lines)-most):], "\n"))
}

// waitReady waits until the server responds. It returns an error if the server stops or takes too long.
func (s *settings) waitReady(ctx context.Context, ended <-chan struct{}) error {
	limit := time.NewTimer(3 * time.Minute)
	defer limit.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
			return errors.New("the server stopped during startup")
		case <-limit.C:
			return errors.New("the server did not respond within three minutes")
		case <-tick.C:
			if s.responds(ctx) {
				return nil
			}
		}
	}
}

// responds reports whether the server gives any response, and soon.
func (s *settings) responds(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.site()+"/api/projects/@current/query/", http.NoBody)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return true
}

// prepare creates whatever is still missing of the demo project, and saves the state.
func (s *settings) prepare(ctx context.Context) (*demo, error) {
	d, err := s.load()
	if err != nil {
		return nil, err
	}
	if d.Ready {
		return d, nil
	}
	if d.Project == 0 {
		var project struct {
			ID int64 `json:"id"`
		}
		if err := s.command(ctx, &project, "project", "create", "--name", "Demo: the history of a public project"); err != nil {
			return nil, err
		}
		d.Project = project.ID
		if err := d.save(); err != nil {
			return nil, err
		}
	}
	number := strconv.FormatInt(d.Project, 10)
	if d.PersonalKey == "" {
		for _, k := range []struct {
			to                  *string
			kind, scopes, label string
		}{
			{&d.PersonalKey, "personal", "*", "demo"},
			{&d.SecretKey, "secret", "endpoint:read", "demo dashboard"},
		} {
			var made struct {
				Key string `json:"key"`
			}
			if err := s.command(ctx, &made, "key", "create", "--project", number, "--kind", k.kind, "--scopes", k.scopes, "--label", k.label); err != nil {
				return nil, err
			}
			*k.to = made.Key
		}
		if err := d.save(); err != nil {
			return nil, err
		}
	}
	if err := s.command(ctx, nil, "import", "--project", number, events); err != nil {
		return nil, err
	}
	if err := d.publish(ctx); err != nil {
		return nil, err
	}
	if err := d.saveCohorts(ctx); err != nil {
		return nil, err
	}
	if err := d.saveInsights(ctx); err != nil {
		return nil, err
	}
	d.Ready = true
	return d, d.save()
}

// captureToken asks for the token that events of a project are captured with.
func (s *settings) captureToken(ctx context.Context, project int64) (string, error) {
	var list struct {
		Tokens []struct {
			Token string `json:"token"`
		} `json:"tokens"`
	}
	err := s.command(ctx, &list, "project", "token", "show", "--project", strconv.FormatInt(project, 10))
	if err != nil || len(list.Tokens) == 0 {
		return "", err
	}
	return list.Tokens[0].Token, nil
}

// consoleLink asks for a link that opens the console, signed in to a project.
func (s *settings) consoleLink(ctx context.Context, project int64) (string, error) {
	raw, err := json.Marshal(map[string]any{"project": project, "site": s.site()})
	if err != nil {
		return "", fmt.Errorf("encoding a request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.adminAddress()+"/analytics/console", bytes.NewReader(raw))
	if err != nil {
		return "", fmt.Errorf("asking for a link to the console: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("asking for a link to the console: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", fmt.Errorf("asking for a link to the console: %w", err)
	}
	var out struct {
		Link string `json:"link"`
	}
	if resp.StatusCode != http.StatusOK || json.Unmarshal(answer, &out) != nil {
		return "", fmt.Errorf("asking for a link to the console: %d: %s", resp.StatusCode, answer)
	}
	return out.Link, nil
}

// publish creates the actions, variables and endpoints, skipping those that an interrupted run already created.
func (d *demo) publish(ctx context.Context) error {
	variable := func(name, typ string, byDefault any) map[string]any {
		return map[string]any{"name": name, "type": typ, "default_value": byDefault}
	}
	endpoint := func(name, description, query string) map[string]any {
		return map[string]any{
			"name": name, "description": description, "data_freshness_seconds": 900,
			"query": map[string]any{"kind": "HogQLQuery", "query": query},
		}
	}
	action := func(name, description string, steps ...map[string]any) map[string]any {
		return map[string]any{"name": name, "description": description, "tags": []string{"demo"}, "steps": steps}
	}
	for _, made := range []struct {
		path string
		body map[string]any
	}{
		{"actions/", action("Fixed a bug", "A commit that fixes something", map[string]any{
			"event": "commit authored", "properties": []map[string]any{{"key": "is_fix", "value": []string{"true"}, "operator": "exact", "type": "event"}},
		})},
		{"actions/", action("Shipped", "A pull request was merged, or a release was tagged",
			map[string]any{"event": "pull request merged"}, map[string]any{"event": "release tagged"})},
		{"insight_variables/", variable("component", "String", "tsdb")},
		{"insight_variables/", variable("year", "Number", 2023)},
		{"endpoints/", endpoint("commits", "Commits to a component in a year, oldest first", commitsQuery)},
		{"endpoints/", endpoint("components", "Components by commits in a year", componentsQuery)},
	} {
		if err := d.post(ctx, made.path, made.body); err != nil {
			return err
		}
	}
	return nil
}

const (
	commitsQuery = `select timestamp, person_id as author, properties.is_fix as is_fix
from events
where event = 'commit authored' and properties.component = {variables.component} and toYear(timestamp) = {variables.year}
order by timestamp, author`

	componentsQuery = `select properties.component as component, count() as commits, count(distinct person_id) as authors
from events
where event = 'commit authored' and component is not null and toYear(timestamp) = {variables.year}
group by component
order by commits desc, component`
)

// post creates a record. It returns no error if the record already exists.
func (d *demo) post(ctx context.Context, path string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding a request: %w", err)
	}
	status, answer, err := d.request(ctx, http.MethodPost, path, raw)
	if err != nil {
		return err
	}
	var failure struct {
		Code string `json:"code"`
	}
	if status >= http.StatusMultipleChoices && (json.Unmarshal(answer, &failure) != nil || failure.Code != "unique") {
		return fmt.Errorf("posting to %s: %d: %s", path, status, answer)
	}
	return nil
}

// request sends a request with the personal key to a route of the project.
func (d *demo) request(ctx context.Context, method, path string, body []byte) (status int, answer []byte, err error) {
	url := fmt.Sprintf("%s/api/projects/%d/%s", d.settings.site(), d.Project, path)
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	req.Header.Set("Authorization", "Bearer "+d.PersonalKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return resp.StatusCode, answer, nil
}

// command runs a command of the server's binary and decodes its output into out.
func (s *settings) command(ctx context.Context, out any, args ...string) error {
	cmd := exec.CommandContext(ctx, s.server, append(append([]string{"analytics"}, args...), "--address", s.adminAddress())...)
	cmd.Stderr = os.Stderr
	result, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s %s: %w", args[0], args[1], err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(result, out); err != nil {
		return fmt.Errorf("%s %s: reading %q: %w", args[0], args[1], result, err)
	}
	return nil
}

func (s *settings) load() (*demo, error) {
	d := &demo{settings: s}
	raw, err := os.ReadFile(s.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the demo's state: %w", err)
	}
	if err := json.Unmarshal(raw, d); err != nil {
		return nil, fmt.Errorf("reading %s: %w; delete %s to start over", s.stateFile(), err, s.folder)
	}
	return d, nil
}

func (d *demo) save() error {
	raw, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the demo's state: %w", err)
	}
	if err := os.WriteFile(d.settings.stateFile(), raw, 0o600); err != nil {
		return fmt.Errorf("saving the demo's state: %w", err)
	}
	return nil
}

func (d *demo) print(console string) {
	site := d.settings.site()
	api := fmt.Sprintf("%s/api/projects/%d", site, d.Project)
	fmt.Printf(`
The demo project %d is served on %s (Ctrl-C stops it).

Open the console, signed in; the link works once, within five minutes:

  %s

Another link:  %s analytics console --project %d --address %s

  personal key, every scope:      %s
  secret key, runs endpoints:     %s

Try, in another terminal:

curl -s %s/query/ -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d '{"query": {"kind": "HogQLQuery", "query": "select event, count() from events group by event order by count() desc"}}'

curl -s %s/endpoints/components/run -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d '{"variables": {"year": 2024}, "limit": 5}'

curl -s '%s/insights/?refresh=blocking' -H 'Authorization: Bearer %s'

curl -si %s/endpoints/commits/run -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d '{"variables": {"component": "tsdb", "year": 2023}, "limit": 20, "offset": 40}'

To capture events into it, paste this into a page (README.md shows how to create a project of your own):

<script src="https://us-assets.i.posthog.com/static/array.js"></script>
<script>posthog.init("%s", { api_host: "%s" })</script>

`, d.Project, site, console, d.settings.server, d.Project, d.settings.adminAddress(), d.PersonalKey, d.SecretKey, api, d.PersonalKey, api, d.SecretKey, api, d.PersonalKey, api, d.SecretKey, d.captureToken, site)
}
