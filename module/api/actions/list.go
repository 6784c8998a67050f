package actions

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// list answers GET actions/: actions that are not deleted, newest first unless the caller asks for another order. They are all on one page unless the caller
// sets a limit.
func (s *Actions) list(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	limit, offset, err := in.PageParams()
	if err != nil {
		return nil, err
	}
	found, err := wanted(c, in)
	if err != nil {
		return nil, err
	}
	if in.URL.Query().Get("limit") == "" {
		limit = len(found)
	}
	out, uses := api.NewList(len(found), limit, offset), s.References.Of(c.Snapshot, c.Project.ID)
	part := found[min(offset, len(found)):]
	for _, a := range part[:min(limit, len(part))] {
		if !out.Add(recordOf(c, a, uses).json()) {
			break
		}
	}
	return out.Response(in), nil
}

// wanted returns the actions that the list's parameters name, in the order that they name.
func wanted(c *api.Caller, in *api.Input) ([]*registry.Action, error) {
	given := in.URL.Query()
	search := strings.ToLower(given.Get("search"))
	listed, err := numbers(given.Get("created_by"))
	if err != nil {
		return nil, api.Invalid("created_by", "invalid_input", "A valid integer is required.")
	}
	var tags []string
	if _, err := in.JSONParam("tags", &tags); err != nil {
		return nil, err
	}
	tagged := registry.HasTag(tags)
	name, descending := strings.CutPrefix(given.Get("ordering"), "-")
	compare, ok := orders[name]
	if name != "" && !ok {
		return nil, api.Invalid("ordering", "invalid_choice", "%q is not a valid choice.", given.Get("ordering"))
	}
	authors := api.SetOf(listed)
	var found []*registry.Action
	for _, a := range c.Snapshot.Actions(c.Project.ID) {
		switch {
		case !strings.Contains(strings.ToLower(api.Deref(a.Name)), search),
			len(authors) > 0 && !authors[c.UserNumber(a.CreatedBy)],
			len(tags) > 0 && !tagged(a.Tags):
		default:
			found = append(found, a)
		}
	}
	if ok {
		slices.SortStableFunc(found, func(a, b *registry.Action) int {
			if descending {
				a, b = b, a
			}
			return compare(c, a, b)
		})
	}
	return found, nil
}

// numbers reads numbers of users, separated by commas; empty text has none.
func numbers(text string) (all []int64, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// orders compare actions by the fields that a list can be ordered by.
var orders = map[string]func(c *api.Caller, a, b *registry.Action) int{
	"name": func(_ *api.Caller, a, b *registry.Action) int {
		return strings.Compare(strings.ToLower(api.Deref(a.Name)), strings.ToLower(api.Deref(b.Name)))
	},
	"created_at": func(_ *api.Caller, a, b *registry.Action) int { return a.CreatedAt.Compare(b.CreatedAt) },
	"created_by": func(c *api.Caller, a, b *registry.Action) int {
		return cmp.Compare(c.UserNumber(a.CreatedBy), c.UserNumber(b.CreatedBy))
	},
	"pinned_at": func(_ *api.Caller, a, b *registry.Action) int {
		return api.Deref(a.PinnedAt).Compare(api.Deref(b.PinnedAt))
	},
}
