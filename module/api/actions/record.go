package actions

import (
	"encoding/json"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/references"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// record is an action in JSON: contract actions.md section 1. Nothing is computed for an action, so its last calculation is its creation.
type record struct {
	ID                 int64      `json:"id"`
	Name               *string    `json:"name"`
	Description        string     `json:"description"`
	Tags               []string   `json:"tags"`
	PostToSlack        bool       `json:"post_to_slack"`
	SlackMessageFormat string     `json:"slack_message_format"`
	Steps              []step     `json:"steps"`
	CreatedAt          time.Time  `json:"created_at"`
	CreatedBy          *api.User  `json:"created_by"`
	Deleted            bool       `json:"deleted"`
	IsCalculating      bool       `json:"is_calculating"`
	LastCalculatedAt   time.Time  `json:"last_calculated_at"`
	TeamID             int64      `json:"team_id"`
	IsAction           bool       `json:"is_action"`
	BytecodeError      *string    `json:"bytecode_error"`
	PinnedAt           *time.Time `json:"pinned_at"`
	CreationContext    *string    `json:"creation_context"`
	UserAccessLevel    string     `json:"user_access_level"`
	// ReferenceCount is the number of uses of the action; UsedBy lists the first of them.
	ReferenceCount int                 `json:"reference_count"`
	UsedBy         []references.Record `json:"used_by"`
}

// step is a step in JSON, with all of its fields.
type step struct {
	Event        *string                `json:"event"`
	Properties   json.RawMessage        `json:"properties"`
	Selector     *string                `json:"selector"`
	TagName      *string                `json:"tag_name"`
	Text         *string                `json:"text"`
	TextMatching *registry.TextMatching `json:"text_matching"`
	Href         *string                `json:"href"`
	HrefMatching *registry.TextMatching `json:"href_matching"`
	URL          *string                `json:"url"`
	URLMatching  *registry.TextMatching `json:"url_matching"`
}

func recordOf(c *api.Caller, a *registry.Action, uses *references.Uses) *record {
	found := uses.OfAction(a.ID)
	r := &record{
		ID: a.ID, Name: a.Name, Description: a.Description, Tags: a.Tags, PostToSlack: a.PostToSlack, SlackMessageFormat: a.SlackMessageFormat,
		Steps: make([]step, len(a.Steps)), CreatedAt: a.CreatedAt, CreatedBy: c.User(a.CreatedBy), Deleted: a.Deleted, LastCalculatedAt: a.CreatedAt,
		TeamID: a.Project, IsAction: true, PinnedAt: a.PinnedAt, UserAccessLevel: "viewer", ReferenceCount: len(found), UsedBy: references.Records(c, found),
	}
	if c.Key.Allows("action:write") {
		r.UserAccessLevel = "editor"
	}
	for i, s := range a.Steps {
		r.Steps[i] = step(s)
	}
	return r
}

func (r *record) json() json.RawMessage { return jsontext.Append(nil, r) }
