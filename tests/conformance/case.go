package conformance

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// Case is one file.
type Case struct {
	Name          string               `json:"name"`
	What          string               `json:"what"`
	Source        string               `json:"source"` // the PostHog test that the case follows, for readers
	Timezone      string               `json:"timezone"`
	WeekStartDay  int                  `json:"week_start_day"`
	Data          Data                 `json:"data"`
	Keys          map[string]KeyWanted `json:"keys"`
	Requests      []Step               `json:"requests"`
	SingleRequest *Step                `json:"request"`
	SingleExpect  *Expectation         `json:"expect"`
}

// Data is imported before the first step.
type Data struct {
	Persons             []map[string]any `json:"persons"`
	Groups              []map[string]any `json:"groups"`
	Events              []map[string]any `json:"events"`
	PropertyDefinitions []struct {
		Type         string `json:"type"`
		Name         string `json:"name"`
		PropertyType string `json:"property_type"`
	} `json:"property_definitions"`
}

// UnmarshalJSON keeps numbers as written, so that 64-bit integers are imported exactly.
func (d *Data) UnmarshalJSON(raw []byte) error {
	type plain Data
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	decoder.DisallowUnknownFields() // this option does not apply to nested decoders
	return decoder.Decode((*plain)(d))
}

// KeyWanted is a key that a case names.
type KeyWanted struct {
	Scopes  string `json:"scopes"`
	Kind    string `json:"kind"`
	Project string `json:"project"` // "other": a key of another project
}

// Step is one request.
type Step struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Body    any               `json:"body"`
	Headers map[string]string `json:"headers"`
	Key     *string           `json:"key"`
	Save    map[string]string `json:"save"`
	// Retry is for how many seconds the step may be repeated until it matches.
	Retry float64 `json:"retry_s"`
	// Gzip compresses the body. A case that wants the matching header sets it itself.
	Gzip   bool        `json:"gzip"`
	Expect Expectation `json:"expect"`
}

// Expectation describes an expected answer.
type Expectation struct {
	Status  any            `json:"status"` // a number or a list of numbers; default 200
	Body    any            `json:"body"`
	Headers map[string]any `json:"headers"`
}

// Load reads every case in a folder and its subfolders, sorted by name.
func Load(folder string) ([]Case, error) {
	var cases []Case
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		c, err := parse(raw)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if c.SingleRequest != nil {
			step := *c.SingleRequest
			if c.SingleExpect != nil {
				step.Expect = *c.SingleExpect
			}
			c.Requests = []Step{step}
		}
		cases = append(cases, c)
		return nil
	})
	slices.SortFunc(cases, func(a, b Case) int { return strings.Compare(a.Name, b.Name) })
	return cases, err
}

// parse reads a case. An unknown field is an error: a case with a misspelled "expect" would pass whatever the answer.
func parse(raw []byte) (c Case, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return c, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return c, errors.New("there is more after the case")
	}
	return c, nil
}

// Play runs a case in a new project. It returns nil if every answer matches.
func Play(server *harness.Server, c Case) error {
	project, err := createProject(server, c.Name, c.Timezone, c.WeekStartDay)
	if err != nil {
		return err
	}
	key, err := createKey(server, project, KeyWanted{})
	if err != nil {
		return err
	}
	names := map[string]any{"project": project, "key": key}
	if names["token"], err = server.CaptureToken(project); err != nil {
		return err
	}
	keys := map[string]string{"": key}
	for name, wanted := range c.Keys {
		owner := project
		if wanted.Project == "other" {
			if names["other_project"] == nil {
				if names["other_project"], err = createProject(server, c.Name+"-other", "", 0); err != nil {
					return err
				}
			}
			owner, _ = names["other_project"].(int64)
		}
		if keys[name], err = createKey(server, owner, wanted); err != nil {
			return err
		}
	}
	if err := importData(server, project, c.Data); err != nil {
		return err
	}
	for i, step := range c.Requests {
		if why, err := playUntilMatch(server.Client(project, key), step, keys, names); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		} else if why != "" {
			return fmt.Errorf("step %d (%s %s): %s", i+1, step.Method, step.Path, why)
		}
	}
	return nil
}

func createProject(server *harness.Server, name, zone string, weekStart int) (int64, error) {
	var project struct{ ID int64 }
	err := server.Ask("/analytics/projects", map[string]any{"name": name, "timezone": cmp.Or(zone, "UTC"), "week_start": weekStart}, &project)
	return project.ID, err
}

func createKey(server *harness.Server, project int64, wanted KeyWanted) (string, error) {
	var key struct{ Key string }
	scopes := strings.Split(cmp.Or(wanted.Scopes, "*"), ",")
	err := server.Ask("/analytics/keys", map[string]any{"project": project, "scopes": scopes, "kind": cmp.Or(wanted.Kind, "personal")}, &key)
	return key.Key, err
}

func importData(server *harness.Server, project int64, data Data) error {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, part := range []struct {
		kind  string
		items []map[string]any
	}{{"person", data.Persons}, {"group", data.Groups}, {"event", data.Events}} {
		for _, item := range part.items {
			item["type"] = part.kind
			if err := encoder.Encode(item); err != nil {
				return fmt.Errorf("encoding the case's data: %w", err)
			}
		}
	}
	if lines.Len() > 0 {
		var report struct {
			Bad      int
			BadLines []any `json:"bad_lines"`
		}
		if err := server.Ask(fmt.Sprintf("/analytics/import?project=%d&learn_types=false", project), &lines, &report); err != nil {
			return err
		}
		if report.Bad > 0 {
			return fmt.Errorf("the case's data is wrong: %v", report.BadLines)
		}
	}
	for _, d := range data.PropertyDefinitions {
		definition := map[string]any{"project": project, "type": cmp.Or(d.Type, "event"), "name": d.Name, "as": d.PropertyType}
		if err := server.Ask("/analytics/properties", definition, nil); err != nil {
			return err
		}
	}
	return nil
}

// minRetry is how long a step that may be repeated is repeated at least: cases run side by side, on machines that may be slow.
const minRetry = time.Minute

// playUntilMatch runs a step. If it has a Retry, the step is repeated while the answer does not match.
func playUntilMatch(client *harness.Client, step Step, keys map[string]string, names map[string]any) (why string, err error) {
	key := client.Key
	end := time.Now()
	if step.Retry > 0 {
		end = end.Add(max(minRetry, time.Duration(step.Retry*float64(time.Second))))
	}
	for ; ; time.Sleep(100 * time.Millisecond) {
		client.Key = key
		if why, err = play(client, step, keys, names); err != nil || why == "" || !time.Now().Before(end) {
			return why, err
		}
	}
}

// play runs one step. why says how the answer differs.
func play(client *harness.Client, step Step, keys map[string]string, names map[string]any) (why string, err error) {
	client.Header = http.Header{}
	for name, value := range step.Headers {
		client.Header.Set(name, fmt.Sprint(Fill(value, names)))
	}
	if step.Key != nil {
		switch name, named := strings.CutPrefix(*step.Key, "@"); {
		case named:
			client.Key = keys[name]
		case *step.Key != "":
			client.Key = ""
			client.Header.Set("Authorization", *step.Key)
		default:
			client.Key = ""
		}
	}
	method := step.Method
	if method == "" {
		method = http.MethodPost
	}
	body, err := step.body(names)
	if err != nil {
		return "", err
	}
	answer, err := client.Send(method, fmt.Sprint(Fill(step.Path, names)), body)
	if err != nil {
		return "", err
	}
	if !statusMatches(step.Expect.Status, answer.Status) {
		return fmt.Sprintf("want status %v, got %d: %s", step.Expect.Status, answer.Status, answer.Raw), nil
	}
	var got any
	if json.Unmarshal(answer.Raw, &got) != nil && len(answer.Raw) > 0 {
		got = string(answer.Raw)
	}
	if step.Expect.Body != nil {
		if why := Differ(Fill(step.Expect.Body, names), got, "body"); why != "" {
			return why, nil
		}
	}
	for name, want := range step.Expect.Headers {
		if why := Differ(Fill(want, names), answer.Header.Get(name), "header "+name); why != "" {
			return why, nil
		}
	}
	for name, field := range step.Save {
		if header, ok := strings.CutPrefix(field, "header:"); ok {
			names[name] = answer.Header.Get(header)
		} else if names[name], err = dig(got, field); err != nil {
			return "", err
		}
	}
	return "", nil
}

// body returns what the step sends.
func (s *Step) body(names map[string]any) (any, error) {
	filled := Fill(s.Body, names)
	if !s.Gzip {
		return filled, nil
	}
	raw, ok := filled.(string)
	if !ok {
		encoded, err := json.Marshal(filled)
		if err != nil {
			return nil, err
		}
		raw = string(encoded)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(raw))
	err = errors.Join(err, w.Close())
	return packed.Bytes(), err
}

func statusMatches(want any, got int) bool {
	switch want := want.(type) {
	case nil:
		return got == http.StatusOK
	case float64:
		return int(want) == got
	case []any:
		return slices.ContainsFunc(want, func(one any) bool { n, _ := one.(float64); return int(n) == got })
	}
	return false
}

// dig returns the value at a dotted path in an answer; numbers are list indices.
func dig(v any, path string) (any, error) {
	for part := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(at) {
				return nil, fmt.Errorf("saving %s: no element %s", path, part)
			}
			v = at[i]
		default:
			return nil, fmt.Errorf("saving %s: nothing at %s", path, part)
		}
	}
	return v, nil
}
