package actions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// readFields reads the writable fields of an action. Like PostHog, it ignores others: clients send back what they received.
func readFields(in *api.Input) (registry.ActionFields, error) {
	all, err := in.ReadObject()
	if err != nil {
		return registry.ActionFields{}, err
	}
	r := &api.Fields{All: all}
	f := registry.ActionFields{
		Name: api.TextOrNull(r, "name"), Description: api.Text(r, "description"), Tags: api.Change[[]string](r, "tags"),
		PostToSlack: api.Change[bool](r, "post_to_slack"), SlackMessageFormat: api.Change[string](r, "slack_message_format"),
		Steps: readSteps(r), Deleted: api.Change[bool](r, "deleted"), Pinned: pinned(r),
	}
	return f, r.Err
}

// pinned reads pinned_at: null and "" unpin, and any other value pins.
func pinned(r *api.Fields) registry.Field[bool] {
	raw, given := r.Take("pinned_at", true)
	if !given {
		return registry.Field[bool]{}
	}
	return registry.To(!api.IsNull(raw) && string(bytes.TrimSpace(raw)) != `""`)
}

func readSteps(r *api.Fields) registry.Field[[]registry.ActionStep] {
	given := api.Change[[]json.RawMessage](r, "steps")
	if !given.Given {
		return registry.Field[[]registry.ActionStep]{}
	}
	if n := len(given.Value); n > registry.MaxActionSteps { // before they are parsed
		r.Fail("steps", "invalid_input", "An action can have %d steps, and this one has %d.", registry.MaxActionSteps, n)
		return registry.Field[[]registry.ActionStep]{}
	}
	steps := make([]registry.ActionStep, len(given.Value))
	for i, raw := range given.Value {
		if r.Err == nil {
			steps[i], r.Err = readStep(raw, i)
		}
	}
	return registry.To(steps)
}

// readStep reads step number i and drops unknown fields.
func readStep(raw json.RawMessage, i int) (registry.ActionStep, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return registry.ActionStep{}, api.Invalid(fmt.Sprintf("steps__%d", i), "invalid_input", "Invalid data. Expected a dictionary.")
	}
	r := &api.Fields{All: fields, Prefix: stepPrefix(i)}
	step := registry.ActionStep{
		Event: text(r, "event"), Properties: filters(r), Selector: trimmed(r, "selector"), TagName: text(r, "tag_name"),
		Text: text(r, "text"), TextMatching: matchingOf(r, "text_matching"), Href: text(r, "href"), HrefMatching: matchingOf(r, "href_matching"),
		URL: trimmed(r, "url"), URLMatching: matchingOf(r, "url_matching"),
	}
	if _, given := fields["url_matching"]; !given {
		contains := registry.MatchContains
		step.URLMatching = &contains
	}
	return step, r.Err
}

// stepPrefix is the prefix of a step's fields in mistakes.
func stepPrefix(i int) string { return fmt.Sprintf("steps__%d__", i) }

// text reads a text and keeps the spaces at its ends.
func text(r *api.Fields, name string) *string {
	value := api.Change[*string](r, name).Value
	if value != nil && *value == "" {
		r.Fail(name, "blank", "This field may not be blank.")
	}
	return value
}

// trimmed reads a text without the spaces at its ends.
func trimmed(r *api.Fields, name string) *string {
	value := api.Change[*string](r, name).Value
	if value == nil {
		return nil
	}
	short := strings.TrimSpace(*value)
	if short == "" {
		r.Fail(name, "blank", "This field may not be blank.")
	}
	return &short
}

func matchingOf(r *api.Fields, name string) *registry.TextMatching {
	return api.Change[*registry.TextMatching](r, name).Value
}

// filters reads a list of property filters.
func filters(r *api.Fields) json.RawMessage {
	raw, given := r.Take("properties", true)
	if !given || api.IsNull(raw) {
		return nil
	}
	if bytes.TrimSpace(raw)[0] != '[' {
		r.Fail("properties", "not_a_list", "Expected a list of property filters.")
		return nil
	}
	return raw
}
