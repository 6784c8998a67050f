package projects

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// owner is PostHog's membership level for users who may do everything: what a key may do depends on its scopes only.
const owner = 15

// memberRecord is a member of an organization in JSON. There are no accounts here: each personal key of the project is a member.
type memberRecord struct {
	ID            string     `json:"id"`
	User          *api.User  `json:"user"`
	Level         int        `json:"level"`
	JoinedAt      time.Time  `json:"joined_at"`
	UpdatedAt     time.Time  `json:"updated_at"`
	Is2FAEnabled  bool       `json:"is_2fa_enabled"`
	HasSocialAuth bool       `json:"has_social_auth"`
	LastLogin     *time.Time `json:"last_login"`
}

func recordMember(c *api.Caller, k *registry.Key) memberRecord {
	changed := k.CreatedAt
	if k.LastRolledAt.After(changed) {
		changed = k.LastRolledAt
	}
	return memberRecord{
		ID: api.DerivedID("member", k.ID), User: api.UserOf(k), Level: owner, JoinedAt: k.CreatedAt, UpdatedAt: changed, LastLogin: api.OrNil(c.Snapshot.LastUsed(k)),
	}
}

// membersOf returns the members of the caller's organization: its valid personal keys, newest first.
func membersOf(c *api.Caller) []memberRecord {
	var all []memberRecord
	for _, k := range c.Snapshot.Keys(c.Project.ID) {
		if k.User != 0 && k.RevokedAt.IsZero() && !k.Expired(c.Start) {
			all = append(all, recordMember(c, k))
		}
	}
	return all
}

// memberOrders compare members by the fields that a list can be ordered by.
var memberOrders = map[string]func(a, b memberRecord) int{
	"joined_at":  func(a, b memberRecord) int { return a.JoinedAt.Compare(b.JoinedAt) },
	"updated_at": func(a, b memberRecord) int { return a.UpdatedAt.Compare(b.UpdatedAt) },
}

// listMembers answers GET /api/organizations/{id}/members/: the latest members first.
func listMembers(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	given := in.URL.Query()
	all := membersOf(c)
	name, descending := strings.CutPrefix(given.Get("order"), "-")
	if name == "" {
		name, descending = "joined_at", true
	}
	compare := memberOrders[name]
	if compare == nil {
		return nil, api.Invalid("order", "invalid_choice", "%q is not a valid choice.", given.Get("order"))
	}
	var since time.Time
	if text := given.Get("updated_after"); text != "" {
		var ok bool
		if since, ok = api.ParseTime(text); !ok {
			return nil, api.Invalid("updated_after", "invalid", "Enter a valid date/time.")
		}
	}
	email, search := given.Get("email"), strings.ToLower(given.Get("search"))
	domain, levels := strings.ToLower(given.Get("email_domain")), given.Get("levels")
	all = slices.DeleteFunc(all, func(m memberRecord) bool {
		return email != "" && !strings.EqualFold(m.User.Email, email) || m.UpdatedAt.Before(since) ||
			domain != "" && !strings.HasSuffix(strings.ToLower(m.User.Email), "@"+strings.TrimPrefix(domain, "@")) ||
			levels != "" && !slices.Contains(strings.Split(levels, ","), strconv.Itoa(m.Level)) ||
			!strings.Contains(strings.ToLower(m.User.Email), search) && !strings.Contains(strings.ToLower(m.User.FirstName), search)
	})
	slices.SortStableFunc(all, func(a, b memberRecord) int {
		if descending {
			return compare(b, a)
		}
		return compare(a, b)
	})
	return api.PageOf(in, all)
}

// getMember answers GET /api/organizations/{id}/members/{uuid of a user or @me}/.
func getMember(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	name := in.At.Item
	if name == meAlias {
		name = api.UserOf(c.Key).UUID
	}
	for _, m := range membersOf(c) {
		if m.User.UUID == name {
			return api.JSON(http.StatusOK, m), nil
		}
	}
	return nil, api.NotFound("Not found.")
}

// meAlias in a path stands for the user of the key.
const meAlias = "@me"
