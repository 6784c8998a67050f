package module

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// readDashboard reads the writable fields of a dashboard. Like the peer it takes no notice of others, but for those that ask
// for something that is not offered here.
func (rq *request) readDashboard() (registry.DashboardFields, error) {
	var f registry.DashboardFields
	fields, err := rq.readObject()
	if err != nil {
		return f, err
	}
	if err := refuseDashboard(fields); err != nil {
		return f, err
	}
	r := fieldReader{fields: fields}
	f.Name, f.Description, f.Pinned = r.textOrNull("name"), r.text("description"), r.flag("pinned")
	f.Deleted, f.DeleteInsights = r.flag("deleted"), r.flag("delete_insights").Value
	f.Filters, f.Variables = r.filters("filters"), r.variables("variables")
	if raw, ok := r.take("breakdown_colors", true); ok {
		f.BreakdownColor = registry.To(raw)
	}
	f.ColorTheme, f.Tags = r.integerOrNull("data_color_theme_id"), r.texts("tags")
	r.textOrNull(folderField)
	f.Tiles = r.tiles()
	if f.Deleted.Given && f.Deleted.Value && f.DeleteInsights && r.err == nil && !rq.Key.Allows("insight:write") {
		return f, api.MissingScope("insight:write")
	}
	if r.err == nil {
		err = rq.mayFilter(&f)
	}
	return f, cmp.Or(r.err, err)
}

// mayFilter refuses expressions in filters of a dashboard to a key that could not run them.
func (rq *request) mayFilter(f *registry.DashboardFields) error {
	if err := rq.mayOverride(f.Filters.Value); err != nil {
		return err
	}
	for i := range f.Tiles {
		if err := rq.mayOverride(f.Tiles[i].FilterOverrides.Value); err != nil {
			return err
		}
	}
	return nil
}

// refuseDashboard refuses what is not offered: copies of dashboards, templates, and restrictions, which need accounts.
func refuseDashboard(fields map[string]json.RawMessage) error {
	for _, name := range []string{"use_template", "use_dashboard", "duplicate_tiles", "quick_filter_ids"} {
		switch raw := string(fields[name]); raw {
		case "", "null", `""`, "[]", "false":
		default:
			return api.Invalid(name, "invalid_input", "%s is not supported.", name)
		}
	}
	if raw := fields["restriction_level"]; len(raw) > 0 && !api.IsNull(raw) && string(raw) != "21" {
		return api.Invalid("restriction_level", "invalid_choice", "%q is not a valid choice.", string(raw))
	}
	return nil
}

// filters reads filters that go over insights: contract section 2.4.
func (r *fieldReader) filters(name string) registry.Field[json.RawMessage] {
	return r.checked(name, "Filters must be a dictionary", func(raw []byte) error {
		_, err := query.ParseOverrides(raw)
		return err // told as it is
	})
}

// variables reads values of insight variables, by the variables' ids: contract section 1.2.
func (r *fieldReader) variables(name string) registry.Field[json.RawMessage] {
	return r.checked(name, "Variables must be a dictionary", func(raw []byte) error {
		_, err := query.ParseVariables(raw)
		return err // told as it is
	})
}

// checked reads an object that has a form of its own.
func (r *fieldReader) checked(name, words string, parse func([]byte) error) registry.Field[json.RawMessage] {
	f := r.object(name, words)
	if !f.Given || r.err != nil {
		return f
	}
	if err := parse(f.Value); err != nil {
		var mistake *diag.Error
		if words = err.Error(); errors.As(err, &mistake) {
			words = mistake.Detail
		}
		r.fail(name, "invalid_input", words)
	}
	return f
}

// tiles reads what is to become of tiles: those of a number, or of an insight that is put on the dashboard.
func (r *fieldReader) tiles() []registry.TileFields {
	if api.IsNull(r.fields["tiles"]) {
		return nil
	}
	items, ok := r.list("tiles")
	if !ok {
		return nil
	}
	out := make([]registry.TileFields, len(items))
	for i, item := range items {
		t := fieldReader{prefix: fmt.Sprintf("tiles.%d.", i)}
		if json.Unmarshal(item, &t.fields) != nil || t.fields == nil {
			r.fail(fmt.Sprintf("tiles.%d", i), "invalid_input", "Invalid data. Expected a dictionary.")
			return nil
		}
		out[i] = t.tile()
		if t.err != nil && r.err == nil {
			r.err = t.err
		}
	}
	return out
}

func (r *fieldReader) tile() registry.TileFields {
	if raw, ok := r.fields["button_tile"]; ok && !api.IsNull(raw) {
		r.fail("button_tile", "invalid_input", "Only insights and texts can be put on a dashboard.")
	}
	f := registry.TileFields{
		Layouts: r.object("layouts", "Layouts must be a dictionary"), Color: r.textOrNull("color"),
		ShowDescription: r.flagOrNull("show_description"), FilterOverrides: r.filters("filters_overrides"), Deleted: r.flag("deleted"),
		Text: r.tileText(),
	}
	if raw, ok := r.fields["id"]; ok && !api.IsNull(raw) {
		f.ID = read[int64](r, "id", false, "A valid integer is required.").Value
	}
	if raw, ok := r.fields["insight"]; ok && !api.IsNull(raw) {
		var whole struct {
			ID int64 `json:"id"`
		}
		if json.Unmarshal(raw, &whole) == nil {
			f.Insight = whole.ID
		} else {
			f.Insight = read[int64](r, "insight", false, "A valid integer is required.").Value
		}
	}
	return f
}

// tileText reads the text of a tile. Who wrote it is known, and its number is the tile's: what is said of them counts for
// nothing, and like the peer an object without a member for no text at all.
func (r *fieldReader) tileText() registry.Field[*string] {
	raw, ok := r.take("text", true)
	if !ok || api.IsNull(raw) || isEmptyObject(raw) {
		return registry.Field[*string]{}
	}
	text := fieldReader{prefix: r.prefix + "text."}
	if json.Unmarshal(raw, &text.fields) != nil {
		r.fail("text", "invalid_input", "Invalid data. Expected a dictionary.")
		return registry.Field[*string]{}
	}
	body := text.textOrNull("body")
	if r.err == nil {
		r.err = text.err
	}
	return registry.To(body.Value)
}
