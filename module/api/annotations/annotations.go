// Package annotations answers the routes of annotations: contract clients.md section 2.
package annotations

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Annotations handles the routes of annotations.
type Annotations struct {
	Registry *registry.Registry
}

// Routes returns the routes of annotations. There is no DELETE: an annotation is deleted with PATCH, so that it can be restored.
func (s *Annotations) Routes() []api.Route {
	const read, write = "annotation:read", "annotation:write"
	return []api.Route{
		{Method: http.MethodGet, Pattern: "annotations", Scope: read, Handler: s.list},
		{Method: http.MethodPost, Pattern: "annotations", Scope: write, Handler: s.create},
		{Method: http.MethodGet, Pattern: "annotations/:name", Scope: read, Handler: s.get},
		{Method: http.MethodPut, Pattern: "annotations/:name", Scope: write, Handler: s.update},
		{Method: http.MethodPatch, Pattern: "annotations/:name", Scope: write, Handler: s.update},
	}
}

// record is an annotation in JSON. It names the annotated insight or dashboard only to callers who may read that.
type record struct {
	ID                 int64                    `json:"id"`
	Content            *string                  `json:"content"`
	DateMarker         *time.Time               `json:"date_marker"`
	CreationType       string                   `json:"creation_type"`
	DashboardItem      *int64                   `json:"dashboard_item"`
	DashboardID        *int64                   `json:"dashboard_id"`
	DashboardName      *string                  `json:"dashboard_name"`
	InsightShortID     *string                  `json:"insight_short_id"`
	InsightName        *string                  `json:"insight_name"`
	InsightDerivedName *string                  `json:"insight_derived_name"`
	CreatedBy          *api.User                `json:"created_by"`
	CreatedAt          time.Time                `json:"created_at"`
	UpdatedAt          time.Time                `json:"updated_at"`
	Deleted            bool                     `json:"deleted"`
	Scope              registry.AnnotationScope `json:"scope"`
	Emoji              *string                  `json:"emoji"`
	Hidden             *bool                    `json:"hidden_in_user_interface"`
}

func recordOf(c *api.Caller, a *registry.Annotation) record {
	r := record{
		ID: a.ID, Content: a.Content, DateMarker: api.OrNil(a.At), CreationType: a.Origin, DashboardItem: a.Insight, DashboardID: a.Dashboard,
		CreatedBy: c.User(a.CreatedBy), CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt, Deleted: a.Deleted, Scope: a.Scope,
		Emoji: api.OrNull(a.Emoji), Hidden: a.Hidden,
	}
	if a.Insight != nil && c.Key.Allows("insight:read") {
		if i := c.Snapshot.Insight(c.Project.ID, *a.Insight); i != nil {
			r.InsightShortID, r.InsightName, r.InsightDerivedName = &i.ShortID, i.Name, i.DerivedName
		}
	}
	if a.Dashboard != nil && c.Key.Allows("dashboard:read") {
		if d := c.Snapshot.Dashboard(c.Project.ID, *a.Dashboard); d != nil {
			r.DashboardName = d.Name
		}
	}
	return r
}

// answer returns an annotation after a write.
func (s *Annotations) answer(status int, c *api.Caller, a *registry.Annotation) *api.Response {
	c = c.Now(s.Registry)
	return api.JSON(status, recordOf(c, a))
}

func (s *Annotations) get(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	id, err := in.ID()
	if err != nil {
		return nil, err
	}
	a := c.Snapshot.Annotation(c.Project.ID, id)
	if a == nil {
		return nil, api.NotFound("Not found.")
	}
	return api.JSON(http.StatusOK, recordOf(c, a)), nil
}

func (s *Annotations) create(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	f, err := readFields(in)
	if err != nil {
		return nil, err
	}
	a, err := s.Registry.CreateAnnotation(ctx, c.Project.ID, f, c.Key.ID, c.Start)
	if err != nil {
		return nil, err
	}
	return s.answer(http.StatusCreated, c, a), nil
}

// update answers PUT and PATCH. Only PATCH finds a deleted annotation, so that it can restore it.
func (s *Annotations) update(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	id, err := in.ID()
	if err != nil {
		return nil, err
	}
	f, err := readFields(in)
	if err != nil {
		return nil, err
	}
	if in.Method == http.MethodPut && c.Snapshot.Annotation(c.Project.ID, id) == nil {
		return nil, api.NotFound("Not found.")
	}
	a, err := s.Registry.UpdateAnnotation(ctx, c.Project.ID, id, f, c.Start)
	if err != nil {
		return nil, err
	}
	return s.answer(http.StatusOK, c, a), nil
}

// readFields reads the writable fields of an annotation. Like PostHog, it ignores others.
func readFields(in *api.Input) (registry.AnnotationFields, error) {
	var out registry.AnnotationFields
	all, err := in.ReadObject()
	if err != nil {
		return out, err
	}
	f := &api.Fields{All: all}
	out.Content, out.Scope = api.TextOrNull(f, "content"), api.Change[registry.AnnotationScope](f, "scope")
	out.Origin, out.Deleted = api.Change[string](f, "creation_type"), api.Change[bool](f, "deleted")
	out.Insight, out.Dashboard = api.Change[*int64](f, "dashboard_item"), api.Change[*int64](f, "dashboard_id")
	out.Hidden = api.Change[*bool](f, "hidden_in_user_interface")
	if emoji := api.Change[*string](f, "emoji"); emoji.Given {
		out.Emoji = registry.To(api.Deref(emoji.Value))
	}
	if marker := api.Change[*string](f, "date_marker"); marker.Given {
		at, ok := time.Time{}, true
		if marker.Value != nil && *marker.Value != "" {
			at, ok = api.ParseTime(*marker.Value)
		}
		if !ok {
			f.Fail("date_marker", "invalid", "Datetime has wrong format. Use one of these formats instead: YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].")
		}
		out.At = registry.To(at)
	}
	return out, f.Err
}

// defaultPage is how many annotations a page has unless the caller sets a limit.
const defaultPage = 1000

// list answers GET annotations/: the latest moments first.
func (s *Annotations) list(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	keep, err := wanted(in)
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(c.Snapshot.Annotations(c.Project.ID), func(a *registry.Annotation) bool { return !keep(a) })
	limit, offset, err := in.PageParams()
	if err != nil {
		return nil, err
	}
	if given, _, err := in.QueryInt("limit"); err == nil && given == 0 {
		limit = defaultPage
	}
	out := api.NewList(len(all), limit, offset)
	all = all[min(offset, len(all)):]
	for _, a := range all[:min(limit, len(all))] {
		if !out.Add(api.JSON(http.StatusOK, recordOf(c, a)).Body.Bytes) {
			break
		}
	}
	return out.Response(in), nil
}

// wanted returns a function that reports whether the list's filters keep an annotation.
func wanted(in *api.Input) (func(*registry.Annotation) bool, error) {
	given := in.URL.Query()
	scope := registry.AnnotationScope(given.Get("scope"))
	if scope == "insight" {
		scope = registry.OnInsight
	}
	if scope != "" && scope != "recording" && !slices.Contains(registry.AnnotationScopes, scope) {
		return nil, api.Invalid("", "invalid_input", "Invalid scope: %s", scope)
	}
	var from, to time.Time
	for _, bound := range []struct {
		name string
		into *time.Time
	}{{"date_from", &from}, {"date_to", &to}} {
		text := given.Get(bound.name)
		if text == "" {
			continue
		}
		var ok bool
		if *bound.into, ok = api.ParseTime(text); !ok {
			return nil, api.Invalid("", "invalid_input", "Invalid date range: %s must be a valid ISO 8601 date", bound.name)
		}
	}
	if !from.IsZero() && !to.IsZero() && from.After(to) {
		return nil, api.Invalid("", "invalid_input", "Invalid date range: date_from must be before date_to")
	}
	words, err := api.SearchWords(in)
	if err != nil {
		return nil, err
	}
	hidden, emoji := given.Get("hidden_in_user_interface"), given.Get("is_emoji")
	return func(a *registry.Annotation) bool {
		switch {
		case scope != "" && a.Scope != scope, !words.In(api.Deref(a.Content)),
			(!from.IsZero() || !to.IsZero()) && a.At.IsZero(), a.At.Before(from), !to.IsZero() && a.At.After(to),
			hidden != "" && isYes(hidden) != api.Deref(a.Hidden), emoji != "" && isYes(emoji) != (a.Emoji != ""):
			return false
		}
		return true
	}, nil
}

// isYes reports whether a parameter stands for true. Unlike [api.IsTrue], it takes only the three words that PostHog takes here, in any case.
func isYes(text string) bool {
	switch strings.ToLower(text) {
	case "true", "1", "yes":
		return true
	}
	return false
}
