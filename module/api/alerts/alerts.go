// Package alerts answers the routes of alerts: contract clients.md section 7.
package alerts

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/internal/trigram"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Alerts handles the routes of alerts.
type Alerts struct {
	Registry *registry.Registry
	// Insight returns an insight in the form for a caller who may read it.
	Insight func(c *api.Caller, i *registry.Insight) any
}

// Routes returns the routes of alerts.
func (s *Alerts) Routes() []api.Route {
	const read, write = "alert:read", "alert:write"
	return []api.Route{
		{Method: http.MethodGet, Pattern: "alerts", Scope: read, Handler: s.list},
		{Method: http.MethodPost, Pattern: "alerts", Scope: write, Handler: s.create},
		{Method: http.MethodGet, Pattern: "alerts/:name", Scope: read, Handler: s.get},
		{Method: http.MethodPut, Pattern: "alerts/:name", Scope: write, Handler: s.update},
		{Method: http.MethodPatch, Pattern: "alerts/:name", Scope: write, Handler: s.update},
		{Method: http.MethodDelete, Pattern: "alerts/:name", Scope: write, Handler: s.remove},
	}
}

// find finds the alert named in the path.
func find(c *api.Caller, in *api.Input) (*registry.Alert, error) {
	if a := c.Snapshot.Alert(c.Project.ID, strings.ToLower(in.At.Name)); a != nil {
		return a, nil
	}
	return nil, api.NotFound("Not found.")
}

// found is an alert of a list; match says how a search found it.
type found struct {
	*registry.Alert

	match *string
}

// list answers GET alerts/: newest first; a search lists exact matches first.
func (s *Alerts) list(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	keep, err := wanted(c, in)
	if err != nil {
		return nil, err
	}
	search, err := api.SearchText(in)
	if err != nil {
		return nil, err
	}
	term := trigram.New(search)
	var rows []found
	for _, a := range c.Snapshot.Alerts(c.Project.ID) {
		if !keep(a) {
			continue
		}
		one := found{Alert: a}
		if search != "" {
			if one.match = api.MatchName(search, term, a.Name); one.match == nil {
				continue
			}
		}
		rows = append(rows, one)
	}
	slices.SortStableFunc(rows, func(a, b found) int { return strings.Compare(api.Deref(a.match), api.Deref(b.match)) })
	users := lazyUsers(c)
	return api.PageBy(in, rows, func(one found) record {
		r := recordOf(c, one.Alert, users)
		r.Insight, r.SearchMatchType = s.insightOf(c, one.Alert), one.match
		return r
	})
}

// wanted returns a function that reports whether the list's filters keep an alert.
func wanted(c *api.Caller, in *api.Input) (func(*registry.Alert) bool, error) {
	var insights []int64
	for _, name := range []string{"insight", "insight_id"} {
		id, given, err := in.QueryInt(name)
		if err != nil {
			return nil, api.Invalid(name, "invalid_input", "A valid integer is required.")
		}
		if given {
			insights = append(insights, int64(id))
		}
	}
	by := in.URL.Query().Get("created_by")
	author, err := uuid.Parse(by)
	if by != "" && err != nil {
		return nil, api.Invalid("created_by", "invalid_input", "Not a valid UUID.")
	}
	tag := registry.PlainTag(in.URL.Query().Get("insight_tag"))
	if tag != "" && !c.Key.Allows(insightRead) {
		return nil, api.MissingScope(insightRead)
	}
	detectors, err := api.ParseFlag(in.URL.Query().Get("has_detector"), false)
	if err != nil {
		return nil, api.Invalid("has_detector", "invalid", "Must be a valid boolean.")
	}
	tagged := registry.HasTag([]string{tag})
	return func(a *registry.Alert) bool {
		if detectors { // no alert has one
			return false
		}
		if i := c.Snapshot.Insight(a.Project, a.Insight); tag != "" && (i == nil || !tagged(i.Tags)) {
			return false
		}
		if slices.ContainsFunc(insights, func(id int64) bool { return a.Insight != id }) {
			return false
		}
		user := c.User(a.CreatedBy)
		return by == "" || user != nil && user.UUID == author.String()
	}, nil
}

// get answers GET alerts/:id/.
func (s *Alerts) get(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	a, err := find(c, in)
	if err != nil {
		return nil, err
	}
	part, err := partOf(in, c.Start)
	if err != nil {
		return nil, err
	}
	return s.answer(ctx, c, http.StatusOK, a, part)
}

func (s *Alerts) create(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	f, err := readAlert(c, in, nil)
	if err != nil {
		return nil, err
	}
	a, err := s.Registry.CreateAlert(ctx, c.Project.ID, f, c.Key.ID, c.Start)
	if err != nil {
		return nil, err
	}
	return s.answer(ctx, c, http.StatusCreated, a, newest)
}

// update answers PUT and PATCH.
func (s *Alerts) update(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	before, err := find(c, in)
	if err != nil {
		return nil, err
	}
	f, err := readAlert(c, in, before)
	if err != nil {
		return nil, err
	}
	a, err := s.Registry.UpdateAlert(ctx, c.Project.ID, before.ID, f, c.Start)
	if err != nil {
		return nil, err
	}
	return s.answer(ctx, c, http.StatusOK, a, newest)
}

// remove answers DELETE.
func (s *Alerts) remove(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	a, err := find(c, in)
	if err != nil {
		return nil, err
	}
	if err := s.Registry.DeleteAlert(ctx, c.Project.ID, a.ID); err != nil {
		return nil, err
	}
	return api.NoContent(), nil
}

// part says which checks of an alert are shown.
type part struct {
	from, to      time.Time // zero: no bound
	limit, offset int
	counted       bool // also show their total number
	asked         bool // the request selects the checks
}

const (
	defaultChecks = 5
	maxChecks     = 500
)

// newest selects the checks that are shown by default.
var newest = part{limit: defaultChecks}

// partOf reads which checks the request selects. Like PostHog, it clamps a limit or an offset out of range instead of refusing it.
func partOf(in *api.Input, now time.Time) (part, error) {
	given := in.URL.Query()
	p := part{limit: defaultChecks, counted: true}
	for _, name := range []string{"checks_date_from", "checks_date_to", "checks_limit", "checks_offset"} {
		p.asked = p.asked || given.Get(name) != ""
	}
	for _, bound := range []struct {
		name string
		into *time.Time
	}{{"checks_date_from", &p.from}, {"checks_date_to", &p.to}} {
		text := given.Get(bound.name)
		if text == "" {
			continue
		}
		at, ok := filter.AnyDate(text, now, time.UTC, 0)
		if !ok {
			return p, api.Invalid(bound.name, "invalid_input", "%q is not a date, and not a relative one such as -7d.", text)
		}
		*bound.into, p.limit = at.Time, maxChecks
	}
	if text := given.Get("checks_limit"); text != "" {
		p.limit = defaultChecks
		if n, err := strconv.Atoi(text); err == nil {
			p.limit = max(1, min(n, maxChecks))
		}
	}
	if n, err := strconv.Atoi(given.Get("checks_offset")); err == nil {
		p.offset = max(0, n)
	}
	return p, nil
}

// checks returns an alert's checks since p.from. ok is false if the registry's store is unavailable, which is an error if the request selects checks.
func (s *Alerts) checks(ctx context.Context, a *registry.Alert, p part) (checks []registry.AlertCheck, ok bool, err error) {
	read := func(ctx context.Context) ([]registry.AlertCheck, error) {
		return s.Registry.AlertChecks(ctx, a.Project, a.ID, p.from)
	}
	if p.asked {
		checks, err = read(ctx)
		return checks, err == nil, err
	}
	return api.Inessential(ctx, read)
}

// answer answers with an alert and a part of its checks. While the registry's store is unavailable, it leaves out the checks and their number.
func (s *Alerts) answer(ctx context.Context, c *api.Caller, status int, a *registry.Alert, p part) (*api.Response, error) {
	checks, known, err := s.checks(ctx, a, p)
	if err != nil {
		return nil, err
	}
	if !p.to.IsZero() {
		checks = slices.DeleteFunc(checks, func(check registry.AlertCheck) bool { return check.At.After(p.to) })
	}
	c = c.Now(s.Registry)
	r := recordOf(c, a, lazyUsers(c))
	r.Insight = s.insightOf(c, a)
	if p.counted && known {
		r.ChecksTotal = new(len(checks))
	}
	checks = checks[min(p.offset, len(checks)):]
	for _, check := range checks[:min(p.limit, len(checks))] {
		r.Checks = append(r.Checks, recordCheck(&check))
	}
	return api.JSON(status, r), nil
}
