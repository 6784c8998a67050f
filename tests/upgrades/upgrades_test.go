// Package upgrades opens data folders written by older versions, and by simulated newer ones, with the built server.
package upgrades_test

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// release is a folder made by record.sh with a version of which only the folder is left.
type release struct {
	name     string
	registry string // the copy of the registry that the upgrade keeps; empty for none
	captured string // when events could be captured: the people of the captured events, one in ClickHouse and one in the log
	noted    bool   // kinds of values were noted from the first event on
}

var releases = []release{
	{name: "first", registry: "registry.db.v3"},
	{name: "tables", registry: "registry.db.v14"},
	{name: "capture", captured: "carl dora"},
	{name: "records", captured: "carl dora"},
	{name: "versions", captured: "carl dora", noted: true},
}

// TestReleases: everything that a release stored is there, and the server continues to work.
func TestReleases(t *testing.T) {
	found, err := filepath.Glob("testdata/*.tar.gz")
	if err != nil || len(found) != len(releases) {
		t.Errorf("there are %d folders for %d releases: %v", len(found), len(releases), err)
	}
	for _, r := range releases {
		t.Run(r.name, func(t *testing.T) {
			folder, keys := unpack(t, r.name)
			s := start(t, folder)
			if !r.noted {
				learns(t, s)
			}
			holds(t, s, r, keys)
			if text := s.Log(); strings.Count(text, "an older version used the data folder") != 1 || !strings.Contains(text, "the data folder is up to date") {
				t.Errorf("the server didn't say what it changes:\n%s", text)
			} else if strings.Index(text, "an older version used") > strings.Index(text, "the embedded engine is running") {
				t.Error("the server said what it changes only after it had begun")
			}
			if r.registry != "" {
				if _, err := os.Stat(filepath.Join(folder, "data", r.registry)); err != nil {
					t.Errorf("the registry of the release isn't kept: %v", err)
				}
			}
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			if err := s.Run(); err != nil {
				t.Fatal(err)
			}
			holds(t, s, r, keys)
			goesOn(t, s, keys)
			if n := strings.Count(s.Log(), "an older version used the data folder"); n != 1 {
				t.Errorf("the folder was upgraded %d times", n)
			}
		})
	}
}

// learns waits until the server has found out the kinds of property values from before it noted any.
func learns(t *testing.T, s *harness.Server) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(s.Log(), "kinds of earlier values are known"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the kinds of earlier values do not become known:\n%s", s.Log())
		}
	}
}

// holds checks everything that record.sh wrote.
func holds(t *testing.T, s *harness.Server, r release, keys map[string]string) {
	t.Helper()
	c := s.Client(1, keys["key"])
	c.Shows(t, "select event, count(), sum(properties.price), uniq(person_id) from events where event != 'captured' group by event order by event",
		[]any{"buy", 2.0, 42.5, 1.0}, []any{"view", 2.0, 1.5, 1.0})
	c.Shows(t, "select properties.plan, properties.paid, properties.note, timestamp from events where event = 'buy' order by timestamp",
		[]any{"pro", true, nil, "2025-12-31T23:59:59Z"}, []any{nil, nil, "naïve ☕", "2026-01-03T08:00:00Z"})
	c.Shows(t, "select person.properties.email, count() from events where event != 'captured' group by 1 order by 1",
		[]any{"ann@example.com", 2.0}, []any{"bob@example.com", 2.0})
	c.Shows(t, "select organization.properties.industry from events where properties.plan = 'free'", []any{"finance"})
	c.Shows(t, "select pdi.distinct_id from person_distinct_ids as pdi where pdi.distinct_id like 'ann%' order by 1", []any{"ann"}, []any{"ann-phone"})

	customer := s.Client(1, keys["secret"])
	for plan, want := range map[string]float64{"pro": 2, "free": 1} {
		answer := customer.Do(t, http.MethodPost, "endpoints/by_plan/run", map[string]any{"variables": map[string]any{"plan": plan}})
		if diff := cmp.Diff(any([]any{[]any{want}}), answer.Body["results"]); diff != "" {
			t.Errorf("the endpoint for the plan %s (-want +got):\n%s\n%s", plan, diff, answer.Raw)
		}
	}
	if answer := s.Client(1, keys["revoked"]).Do(t, http.MethodGet, "endpoints/", nil); answer.Status != http.StatusUnauthorized {
		t.Errorf("the revoked key gets %d", answer.Status)
	}
	if r.captured == "" {
		return
	}
	var want [][]any
	for person := range strings.FieldsSeq(r.captured) {
		want = append(want, []any{person, "Ghent", 1.0})
	}
	c.Shows(t, "select distinct_id, person.properties.city, count() from events where event = 'captured' group by 1, 2 order by 1", want...)
}

// goesOn writes new data.
func goesOn(t *testing.T, s *harness.Server, keys map[string]string) {
	t.Helper()
	token := keys["token"]
	if token == "" {
		var err error
		if token, err = s.CaptureToken(1); err != nil {
			t.Fatal(err)
		}
	}
	body := fmt.Sprintf(`{"api_key":%q,"batch":[{"event":"new","distinct_id":"ann","properties":{"$set":{"email":"ann@example.org"}}}]}`, token)
	answer, err := http.Post(s.URL+"/batch/", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("a new event gets %d, %v", answer.StatusCode, err)
	}
	c := s.Client(1, keys["key"])
	c.Shows(t, "select count() from events where person.properties.visits = 3 and event in ('new', 'view')", []any{3.0})
	c.Shows(t, "select properties.email from persons where properties.visits = 3", []any{"ann@example.org"})
	if answer := c.Do(t, http.MethodPatch, "endpoints/by_plan/", map[string]any{"description": "kept"}); answer.Status != http.StatusOK {
		t.Errorf("a change of the endpoint gets %d %s", answer.Status, answer.Raw)
	}
}

func start(t *testing.T, folder string) *harness.Server {
	t.Helper()
	s, err := harness.Open(folder, "limits {\n\t\t\trate 100000/s\n\t\t}")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Errorf("stopping the server: %v", err)
		}
	})
	return s
}

// unpack makes a server's folder with the data of a release, and returns the keys that the release issued.
func unpack(t *testing.T, name string) (folder string, keys map[string]string) {
	t.Helper()
	folder, keys = t.TempDir(), map[string]string{}
	env, err := os.ReadFile(filepath.Join("testdata", name+".env"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(env)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		keys[key] = value
	}
	packed, err := os.Open(filepath.Join("testdata", name+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	plain, err := gzip.NewReader(bufio.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if err := extract(tar.NewReader(plain), filepath.Join(folder, "data")); err != nil {
		t.Fatal(err)
	}
	return folder, keys
}

func extract(in *tar.Reader, into string) error {
	for {
		entry, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(into, filepath.FromSlash(entry.Name))
		switch entry.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o700)
		case tar.TypeSymlink:
			err = os.Symlink(entry.Linkname, path)
		default:
			err = write(path, in)
		}
		if err != nil {
			return err
		}
	}
}

func write(path string, content io.Reader) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// files lists a folder with the sizes and contents of its files, except for the lock, which every start writes.
func files(t *testing.T, folder string) []string {
	t.Helper()
	var list []string
	err := filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.Name() == "lock" {
			return err
		}
		line := info.Mode().String() + " " + path
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %d %x", len(content), content)
		}
		list = append(list, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}
