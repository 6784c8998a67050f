package people

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/contents"
)

// The value of the parameter key that requests event names, and the prefix of PostHog's own names.
const (
	customEvents = "custom_event"
	ownPrefix    = "$"
)

// maxOthers is how many other properties a request for values can name.
const maxOthers = 20

// suggestion is a value in JSON.
type suggestion struct {
	Name  any    `json:"name"`
	Count *int64 `json:"count,omitempty"` // of people
}

// shownValue returns a value stored as text: a JSON number or string decoded, anything else as it is.
func shownValue(text string) any {
	var value any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil || decoder.InputOffset() != int64(len(text)) {
		return text
	}
	switch value := value.(type) {
	case json.Number:
		return value
	case string: // an item of a list
		return value
	}
	return text // null, booleans, lists, objects and plain texts
}

// maxSuggestions is how many values of a property are suggested.
const maxSuggestions = 50

// maxListText is the longest text, in bytes, that is parsed as a list.
const maxListText = 64 << 10

// maxListDepth is how deeply nested lists are parsed.
const maxListDepth = 4

// shownValues returns the values that a text stands for: if it is a list, its first items.
func shownValues(text string) []any {
	if len(text) > maxListText {
		return []any{text}
	}
	return listedValues(nil, text, maxListDepth)
}

// listedValues appends the values that a text stands for, up to maxSuggestions.
func listedValues(out []any, text string, depth int) []any {
	var list []json.RawMessage
	if depth == 0 || !strings.HasPrefix(text, "[") || json.Unmarshal([]byte(text), &list) != nil {
		return append(out, shownValue(text))
	}
	for _, item := range list {
		if len(out) >= maxSuggestions {
			break
		}
		out = listedValues(out, string(item), depth-1)
	}
	return out
}

// eventValues answers GET events/values/: property values of the last days' events, or the names of the project's own events.
func (s *People) eventValues(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	if err := cannotRead(in); err != nil {
		return nil, err
	}
	given, out := in.URL.Query(), []suggestion{}
	key, search := given.Get("key"), strings.TrimSpace(given.Get("value"))
	if key == "" {
		return api.JSON(http.StatusOK, out), nil
	}
	if key == customEvents {
		events, quotas, err := contents.Events(ctx, s.Executor, c)
		for _, e := range events { // by name
			if !strings.HasPrefix(e.Name, ownPrefix) && strings.Contains(strings.ToLower(e.Name), strings.ToLower(search)) {
				out = append(out, suggestion{Name: e.Name})
			}
		}
		return api.JSON(http.StatusOK, out).With(quotas), err
	}
	asked := taxonomy.RecentValues{Property: key, Search: search, Events: namesOf(given["event_name"])}
	if api.IsTrue(given.Get("is_column")) {
		if asked.Column = key; !slices.Contains(taxonomy.Columns, key) {
			return nil, api.Invalid("key", "invalid_choice", "%q is not a column with values to choose from.", key)
		}
	}
	for name, values := range given {
		property, ok := strings.CutPrefix(name, "properties_")
		if !ok || property == "" {
			continue
		}
		if asked.Others == nil {
			asked.Others = map[string][]string{}
		}
		for _, value := range values {
			asked.Others[property] = append(asked.Others[property], namesOf([]string{value})...)
		}
	}
	if len(asked.Others) > maxOthers {
		return nil, api.Invalid("", "invalid_input", "A request for values can name at most %d other properties.", maxOthers)
	}
	var value string
	var count int64
	quotas, err := contents.Rows(ctx, s.Executor, c, asked.Query(), []any{&value, &count}, func() {
		for _, one := range shownValues(value) {
			if len(out) < maxSuggestions && !slices.ContainsFunc(out, func(had suggestion) bool { return had.Name == one }) {
				out = append(out, suggestion{Name: one})
			}
		}
	})
	return api.JSON(http.StatusOK, out).With(quotas), err
}

// namesOf returns texts given one by one or as JSON lists.
func namesOf(given []string) (out []string) {
	for _, text := range given {
		var list []string
		switch {
		case text == "":
		case strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &list) == nil:
			out = append(out, list...)
		default:
			out = append(out, text)
		}
	}
	return out
}

// personValues answers GET persons/values/: the values of a property of people, most frequent first.
func (s *People) personValues(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	if err := cannotRead(in); err != nil {
		return nil, err
	}
	given, out := in.URL.Query(), []suggestion{}
	key := given.Get("key")
	if key == "" || strings.HasPrefix(key, "$virt") { // computed and not stored
		return api.JSON(http.StatusOK, out), nil
	}
	var value string
	var count int64
	quotas, err := contents.Rows(ctx, s.Executor, c, taxonomy.SuggestedPersonValues(key, given.Get("value")), []any{&value, &count}, func() {
		out = append(out, suggestion{Name: shownValue(value), Count: new(count)})
	})
	return api.JSON(http.StatusOK, out).With(quotas), err
}
