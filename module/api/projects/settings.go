package projects

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// kept are settings without an effect here: clients write them and expect to read them back.
type kept struct {
	Heatmaps         *bool    `json:"heatmaps_opt_in"`
	Exceptions       *bool    `json:"autocapture_exceptions_opt_in"`
	SessionRecording bool     `json:"session_recording_opt_in"`
	Surveys          *bool    `json:"surveys_opt_in"`
	CookielessMode   *int     `json:"cookieless_server_hash_mode"`
	WebVitals        *bool    `json:"autocapture_web_vitals_opt_in"`
	TestAccounts     *bool    `json:"test_account_filters_default_checked"`
	AppURLs          []string `json:"app_urls"`
	RecordingDomains []string `json:"recording_domains"`
	Performance      *bool    `json:"capture_performance_opt_in"`

	NetworkCapture map[string]json.RawMessage `json:"session_recording_network_payload_capture_config"`
}

// keptOf returns those settings of a project, or their defaults.
func keptOf(p *registry.Project) kept {
	out := kept{CookielessMode: new(0), AppURLs: []string{}}
	_ = json.Unmarshal([]byte(p.Others), &out) // readKept has checked it
	out.AppURLs = api.OrEmpty(out.AppURLs)
	if out.CookielessMode != nil {
		*out.CookielessMode = 0 // earlier versions kept any
	}
	return out
}

// readKept reads those settings from a body.
func readKept(f *api.Fields) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	keep(f, out, "heatmaps_opt_in", api.Change[*bool])
	keep(f, out, "autocapture_exceptions_opt_in", api.Change[*bool])
	keep(f, out, "session_recording_opt_in", api.Change[bool])
	keep(f, out, "surveys_opt_in", api.Change[*bool])
	if mode := api.Change[*int](f, "cookieless_server_hash_mode"); mode.Given && api.Deref(mode.Value) != 0 {
		f.Fail("cookieless_server_hash_mode", "not_supported", "The cookieless mode is not supported: events that are sent in it are not stored.")
	}
	keep(f, out, "cookieless_server_hash_mode", api.Change[*int])
	keep(f, out, "autocapture_web_vitals_opt_in", api.Change[*bool])
	keep(f, out, "test_account_filters_default_checked", api.Change[*bool])
	keep(f, out, "app_urls", api.Change[[]string])
	keep(f, out, "recording_domains", api.Change[*[]string])
	keep(f, out, "capture_performance_opt_in", api.Change[*bool])
	keep(f, out, "session_recording_network_payload_capture_config", api.Change[*map[string]json.RawMessage])
	return out
}

func keep[T any](f *api.Fields, out map[string]json.RawMessage, name string, read func(*api.Fields, string) registry.Field[T]) {
	if value := read(f, name); value.Given {
		out[name] = jsontext.Append(nil, value.Value)
	}
}

// updateProject answers PATCH /api/projects/{id}/ and its aliases. Like PostHog, it ignores unknown settings.
func (p *Projects) updateProject(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	change, err := readSettings(c, in)
	if err != nil {
		return nil, err
	}
	if _, err = p.Registry.UpdateProject(ctx, c.Project.ID, change); err != nil {
		return nil, err
	}
	c = c.Now(p.Registry)
	if now := c.Snapshot.Project(c.Project.ID); now != nil {
		c.Project = now
	}
	return api.JSON(http.StatusOK, recordProject(c)), nil
}

func readSettings(c *api.Caller, in *api.Input) (registry.ProjectChange, error) {
	change := registry.ProjectChange{At: c.Start}
	all, err := in.ReadObject()
	if err != nil {
		return change, err
	}
	f := &api.Fields{All: all}
	change.Name, change.Timezone = orNil(api.Change[string](f, "name")), orNil(api.Change[string](f, "timezone"))
	if day := api.Change[*int](f, "week_start_day"); day.Given {
		n := api.Deref(day.Value)
		if n != 0 && n != 1 {
			f.Fail("week_start_day", "invalid_choice", "\"%d\" is not a valid choice.", n)
		}
		change.WeekStart = &n
	}
	change.TestAccountFilters = list(f, "test_account_filters")
	change.PathCleaningFilters = list(f, "path_cleaning_filters")
	change.DisplayNames = list(f, "person_display_name_properties")
	change.AnonymizeIPs = orNil(api.Change[bool](f, "anonymize_ips"))
	change.Others = readKept(f)
	if f.Err != nil {
		return change, f.Err
	}
	if change.TestAccountFilters != nil { // everyone who excludes test accounts runs the HogQL in them
		if filters, err := query.ParseTestAccounts([]byte(*change.TestAccountFilters)); err == nil && filters.HogQL() && !c.Key.Allows(result.QueryScope) {
			return change, api.MissingScope(result.QueryScope)
		}
	}
	return change, nil
}

func orNil[T any](f registry.Field[T]) *T {
	if !f.Given {
		return nil
	}
	return &f.Value
}

// list reads a JSON list; null counts as empty.
func list(f *api.Fields, name string) *string {
	raw, given := f.TakeList(name, true)
	if !given {
		return nil
	}
	text := "[]"
	var items []json.RawMessage
	switch {
	case api.IsNull(raw):
	case json.Unmarshal(raw, &items) != nil:
		f.Fail(name, "not_a_list", "Expected a list of items.")
	default:
		text = string(raw)
	}
	return &text
}
