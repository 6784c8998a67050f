package insights

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// readDashboard reads the writable fields of a dashboard. Like PostHog, it ignores others, except those that ask for an unsupported feature.
func readDashboard(c *api.Caller, in *api.Input, isNew bool) (registry.DashboardFields, error) {
	var f registry.DashboardFields
	r, err := readFields(in)
	if err != nil {
		return f, err
	}
	refuseDashboard(r)
	f.Name, f.Description, f.Pinned = api.TextOrNull(r, "name"), api.Text(r, "description"), flag(r, "pinned")
	f.Deleted, f.DeleteInsights = flag(r, "deleted"), flag(r, "delete_insights").Value
	f.Filters, f.Variables = filtersField(r, "filters"), variablesField(r, "variables")
	f.BreakdownColor = colorsField(r)
	f.ColorTheme, f.Tags = api.Change[*int](r, "data_color_theme_id"), items[string](r, "tags")
	api.TextOrNull(r, folderField)
	f.Tiles = tilesField(r)
	if isNew {
		fromOther(r, &f)
	} else {
		f.Duplicate = duplicatesField(r)
	}
	if r.Err != nil {
		return f, r.Err
	}
	f.KeepInsights = !c.Key.Allows("insight:write")
	writesInsights := f.Deleted.Value && f.DeleteInsights || f.CopyContents || len(f.Duplicate) > 0
	if writesInsights && f.KeepInsights {
		return f, api.MissingScope("insight:write")
	}
	return f, mayFilter(c.Key, &f)
}

// colorsField reads the colors of breakdown values. Like PostHog, it wants to know which value has which color, and keeps all other members.
func colorsField(r *api.Fields) registry.Field[json.RawMessage] {
	const name = "breakdown_colors"
	raw, ok := r.TakeList(name, true)
	if !ok || api.IsNull(raw) {
		return registry.Field[json.RawMessage]{Value: raw, Given: ok}
	}
	all, ok := list(r, name)
	if !ok {
		return registry.Field[json.RawMessage]{}
	}
	for i, item := range all {
		if r.Err = checkColor(item, fmt.Sprintf("%s__%d", name, i)); r.Err != nil {
			break
		}
	}
	return registry.To(raw)
}

// checkColor refuses what does not give a value of a breakdown a color, or none. The field of mistakes is at.
func checkColor(raw json.RawMessage, at string) error {
	one := api.Fields{Prefix: at + "__"}
	if json.Unmarshal(raw, &one.All) != nil || one.All == nil {
		return api.Invalid(at, "invalid_input", "Invalid data. Expected a dictionary, but got %s.", api.PythonType(raw))
	}
	need(&one, "breakdownValue")
	need(&one, "colorToken")
	api.Change[string](&one, "breakdownValue")
	api.Change[*string](&one, "colorToken")
	return one.Err
}

// shownColors returns the colors of a dashboard without those that are no longer accepted.
func shownColors(stored json.RawMessage) json.RawMessage {
	if len(stored) == 0 || api.IsNull(stored) {
		return stored
	}
	var all []json.RawMessage
	_ = json.Unmarshal(stored, &all) // anything but a list has no colors
	count := len(all)
	all = slices.DeleteFunc(all, func(item json.RawMessage) bool { return checkColor(item, "") != nil })
	if count > 0 && len(all) == count {
		return stored
	}
	return jsontext.Append(nil, append([]json.RawMessage{}, all...))
}

// mayFilter refuses HogQL expressions in filters of a dashboard if the key could not run them.
func mayFilter(key *registry.Key, f *registry.DashboardFields) error {
	if err := result.MayOverride(key, f.Filters.Value); err != nil {
		return err
	}
	for i := range f.Tiles {
		if err := result.MayOverride(key, f.Tiles[i].FilterOverrides.Value); err != nil {
			return err
		}
	}
	return nil
}

// refuseDashboard refuses unsupported features: quick filters, and restrictions, which need accounts.
func refuseDashboard(r *api.Fields) {
	switch raw, _ := r.TakeList("quick_filter_ids", true); string(raw) {
	case "", "null", `""`, `[""]`, "[]":
	default:
		r.Fail("quick_filter_ids", "invalid_input", "quick_filter_ids is not supported.")
	}
	if level := api.Change[*int](r, "restriction_level").Value; level != nil && *level != anyoneMayEdit {
		r.Fail("restriction_level", "invalid_choice", "\"%d\" is not a valid choice.", *level)
	}
}

// fromOther reads what a new dashboard is copied from: another dashboard, or a template, of which there are none.
func fromOther(r *api.Fields, f *registry.DashboardFields) {
	template := api.Change[string](r, "use_template").Value
	if from := api.Change[*int64](r, "use_dashboard").Value; from != nil {
		f.From = *from
	}
	if r.All["duplicate_tiles"] != nil && f.From != 0 {
		f.CopyContents = isAsked(r, "duplicate_tiles")
	}
	switch {
	case template != "" && f.From != 0:
		r.Fail("", "invalid_input", "`use_dashboard` and `use_template` cannot be used together")
	case template != "":
		r.Fail("use_template", "invalid_input", "Invalid template provided: %s", template)
	}
}

// isAsked reports whether a value counts as true. As in PostHog, so does any list that is not empty.
func isAsked(r *api.Fields, name string) bool {
	raw, _ := r.Take(name, true) // a form can't send a list here
	if len(raw) > 0 && bytes.TrimSpace(raw)[0] == '[' {
		var all []json.RawMessage
		return json.Unmarshal(raw, &all) == nil && len(all) > 0
	}
	return api.Deref(api.Change[*bool](r, name).Value)
}

// duplicatesField reads which tiles of a dashboard to duplicate, and where to place the copies.
func duplicatesField(r *api.Fields) []registry.TileFields {
	var out []registry.TileFields
	eachTile(r, "duplicate_tiles", func(t *api.Fields) {
		need(t, "id")
		one := registry.TileFields{Layouts: object(t, "layouts", "Layouts must be a dictionary")}
		t.Read("id", &one.ID)
		out = append(out, one)
	})
	return out
}

// filtersField reads filters to apply to insights: contract api.md section 2.4.
func filtersField(r *api.Fields, name string) registry.Field[json.RawMessage] {
	return checked(r, name, "Filters must be a dictionary", func(raw []byte) error {
		_, err := query.ParseOverrides(raw)
		return err // passed on as it is
	})
}

// variablesField reads values of insight variables by variable id: contract api.md section 1.2.
func variablesField(r *api.Fields, name string) registry.Field[json.RawMessage] {
	return checked(r, name, "Variables must be a dictionary", func(raw []byte) error {
		_, err := query.ParseVariables(raw)
		return err // passed on as it is
	})
}

// checked reads an object, and checks it with parse.
func checked(r *api.Fields, name, words string, parse func([]byte) error) registry.Field[json.RawMessage] {
	f := object(r, name, words)
	if !f.Given || r.Err != nil {
		return f
	}
	if err := parse(f.Value); err != nil {
		var mistake *diag.Error
		if words = err.Error(); errors.As(err, &mistake) {
			words = mistake.Detail
		}
		r.Fail(name, "invalid_input", "%s", words)
	}
	return f
}

// tilesField reads changes to tiles: each names a tile by id, or an insight to add to the dashboard.
func tilesField(r *api.Fields) []registry.TileFields {
	var out []registry.TileFields
	eachTile(r, "tiles", func(t *api.Fields) { out = append(out, tileOf(t)) })
	return out
}

// eachTile calls read for each object of a list, of which there are as many as a dashboard has tiles at most; null counts as empty.
func eachTile(r *api.Fields, name string, read func(*api.Fields)) {
	if api.IsNull(r.All[name]) {
		return
	}
	tiles, ok := list(r, name)
	switch {
	case !ok:
		return
	case len(tiles) > registry.MaxTiles:
		r.Fail(name, "max_length", "Ensure this field has no more than %d elements.", registry.MaxTiles)
		return
	}
	for i, raw := range tiles {
		at := fmt.Sprintf("%s.%d", name, i)
		t := api.Fields{Prefix: at + ".", Err: r.Err}
		if json.Unmarshal(raw, &t.All) != nil || t.All == nil {
			r.Fail(at, "invalid_input", "Invalid data. Expected a dictionary.")
			return
		}
		read(&t)
		r.Err = t.Err
	}
}

func tileOf(r *api.Fields) registry.TileFields {
	if raw, ok := r.Take("button_tile", true); ok && !api.IsNull(raw) {
		r.Fail("button_tile", "invalid_input", "Only insights and texts can be put on a dashboard.")
	}
	f := registry.TileFields{
		Layouts: object(r, "layouts", "Layouts must be a dictionary"), Color: api.Change[*string](r, "color"),
		ShowDescription: api.Change[*bool](r, "show_description"), Transparent: api.Change[*bool](r, "transparent_background"),
		FilterOverrides: filtersField(r, "filters_overrides"), Deleted: flag(r, "deleted"), Text: tileText(r),
	}
	r.Read("id", &f.ID)
	var whole struct {
		ID int64 `json:"id"`
	}
	if json.Unmarshal(r.All["insight"], &whole) == nil {
		f.Insight = whole.ID
	} else {
		r.Read("insight", &f.Insight)
	}
	return f
}

// tileText reads the text of a tile. It ignores the author and the id, which the server knows. As in PostHog, an object without members counts as no text.
func tileText(r *api.Fields) registry.Field[*string] {
	raw, ok := r.Take("text", true)
	if !ok || api.IsNull(raw) || isEmptyObject(raw) {
		return registry.Field[*string]{}
	}
	text := api.Fields{Prefix: r.Prefix + "text."}
	if json.Unmarshal(raw, &text.All) != nil {
		r.Fail("text", "invalid_input", "Invalid data. Expected a dictionary.")
		return registry.Field[*string]{}
	}
	body := api.Change[*string](&text, "body")
	r.Err = text.Err
	return registry.To(body.Value)
}
