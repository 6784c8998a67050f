package definitions

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/contents"
	"github.com/caddy-analytics/caddy-analytics/module/eventcode"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// maxCode is the most events for which code is generated.
const maxCode = 5000

// sentByHand are the events of SDKs that application code sends too, as in PostHog.
var sentByHand = []string{"$pageview", "$pageleave", "$screen"}

// writeCode answers GET event_definitions/typescript/, golang/ and python/: generated code that captures the project's events.
func (d *Definitions) writeCode(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	asked := path.Base(in.URL.Path)
	at := slices.IndexFunc(eventcode.Languages, func(l eventcode.Language) bool { return l.Name == asked })
	if at < 0 {
		return nil, api.NotFound("Not found.")
	}
	seen, quotas, err := contents.Events(ctx, d.Executor, c)
	if err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	var events []eventcode.Event
	for _, e := range withDefined(c, seen) {
		if e.Name != "" && !strings.HasPrefix(e.Name, "$") || slices.Contains(sentByHand, e.Name) {
			events = append(events, eventcode.Event{Name: e.Name})
		}
	}
	if len(events) > maxCode {
		return &api.Response{Quotas: quotas}, api.Invalid("", "invalid_input", "The project has %d events, and code is written for %d at most.", len(events), maxCode)
	}
	properties, counted, err := contents.PropertiesByEvent(ctx, d.Executor, c)
	if counted != nil {
		quotas = counted
	}
	if err != nil {
		return &api.Response{Quotas: quotas}, err
	}
	content, err := eventcode.Languages[at].Write(withProperties(c, events, properties))
	if err != nil {
		return nil, fmt.Errorf("writing events in %s: %w", asked, err)
	}
	return api.JSON(http.StatusOK, struct {
		Content    string `json:"content"`
		EventCount int    `json:"event_count"`
		Hash       string `json:"schema_hash"`
	}{content, len(events), eventcode.Hash(content)}).With(quotas), nil
}

// withProperties adds properties to the events that have them, and sorts the result.
func withProperties(c *api.Caller, events []eventcode.Event, properties []contents.Property) []eventcode.Event {
	defined := make(map[string]registry.PropertyType)
	for _, p := range c.Snapshot.PropertyDefinitions(c.Project.ID) {
		if p.Scope != registry.EventProperty {
			continue
		}
		if shown := recordProperty(c, p).PropertyType; shown != nil {
			defined[p.Name] = *shown
		}
	}
	places := make(map[string]*eventcode.Event, len(events))
	for i := range events {
		places[events[i].Name] = &events[i]
	}
	for _, p := range properties {
		if e := places[p.Event]; e != nil {
			e.Properties = append(e.Properties, eventcode.Property{Name: p.Name, Type: codeType(p.Kinds, defined[p.Name])})
		}
	}
	return eventcode.Sorted(events)
}

// codeType returns the type of a property. kinds are the first characters of its values as JSON, which reveal lists and objects. The other types come from
// its definition, in which everything but numbers, times and booleans is a text.
func codeType(kinds []string, defined registry.PropertyType) eventcode.Type {
	switch {
	case slices.Equal(kinds, []string{"["}):
		return eventcode.Array
	case slices.Equal(kinds, []string{"{"}):
		return eventcode.Object
	case slices.Contains(kinds, "["), slices.Contains(kinds, "{"):
		return eventcode.Any
	}
	switch defined {
	case registry.PropertyString:
		return eventcode.String
	case registry.PropertyNumeric:
		return eventcode.Numeric
	case registry.PropertyBoolean:
		return eventcode.Boolean
	case registry.PropertyDateTime:
		return eventcode.DateTime
	case registry.PropertyDuration, registry.NoType:
	}
	return eventcode.Any
}
