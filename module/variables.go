package module

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// variableRecord is an insight variable on the wire: contract section 4.6.
type variableRecord struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Type         string    `json:"type"`
	DefaultValue any       `json:"default_value"`
	Values       []any     `json:"values"`
	IsMulti      bool      `json:"is_multi"`
	ValuesQuery  *string   `json:"values_query"`
	Connection   *string   `json:"values_query_connection_id"`
	CodeName     string    `json:"code_name"`
	CreatedBy    *user     `json:"created_by"`
	CreatedAt    time.Time `json:"created_at"`
}

func (rq *request) recordVariable(v *registry.Variable) variableRecord {
	return variableRecord{
		ID: v.ID, Name: v.Name, Type: string(v.Type), DefaultValue: v.Default, Values: v.Values, IsMulti: v.IsMulti,
		CodeName: v.CodeName, CreatedBy: rq.user(v.CreatedBy), CreatedAt: v.CreatedAt,
	}
}

// variablesPage is how many variables a page holds: this list counts pages, not rows.
const variablesPage = 500

func (rq *request) listVariables() error {
	number, given, err := rq.queryInt("page")
	if err != nil {
		return err
	}
	all := rq.snap.Variables(rq.project.ID)
	pages := max(1, (len(all)+variablesPage-1)/variablesPage)
	if !given {
		number = 1
	}
	if number < 1 || number > pages {
		return notFound("Invalid page.")
	}
	from := (number - 1) * variablesPage
	out := page[variableRecord]{Count: len(all), Results: []variableRecord{}}
	for _, v := range all[from:min(from+variablesPage, len(all))] {
		out.Results = append(out.Results, rq.recordVariable(v))
	}
	if number < pages {
		out.Next = rq.numberedPage(number + 1)
	}
	if number > 1 {
		out.Previous = rq.numberedPage(number - 1)
	}
	rq.reply(http.StatusOK, out)
	return nil
}

func (rq *request) getVariable() error {
	v := rq.snap.VariableByID(rq.project.ID, rq.at.name)
	if v == nil {
		return notFound("Not found.")
	}
	rq.reply(http.StatusOK, rq.recordVariable(v))
	return nil
}

func (rq *request) createVariable() error {
	update, err := rq.readVariable()
	if err != nil {
		return err
	}
	if err := checkDefault(registry.Variable{Type: deref(update.Type), IsMulti: deref(update.IsMulti)}, update); err != nil {
		return err
	}
	v, err := rq.rt.registry.CreateVariable(rq.r.Context(), registry.NewVariable{
		Project: rq.project.ID, Name: deref(update.Name), Type: deref(update.Type), Default: update.Default, Values: update.Values,
		IsMulti: deref(update.IsMulti), CreatedBy: rq.key.ID,
	}, time.Now())
	if err != nil {
		return err
	}
	rq.reply(http.StatusCreated, rq.recordVariable(v))
	return nil
}

func (rq *request) updateVariable() error {
	update, err := rq.readVariable()
	if err != nil {
		return err
	}
	if current := rq.snap.VariableByID(rq.project.ID, rq.at.name); current != nil {
		if err := checkDefault(*current, update); err != nil {
			return err
		}
	}
	v, err := rq.rt.registry.UpdateVariable(rq.r.Context(), rq.project.ID, rq.at.name, update)
	if err != nil {
		return err
	}
	rq.reply(http.StatusOK, rq.recordVariable(v))
	return nil
}

func (rq *request) deleteVariable() error {
	if err := rq.rt.registry.DeleteVariable(rq.r.Context(), rq.project.ID, rq.at.name); err != nil {
		return err
	}
	rq.replyNothing()
	return nil
}

// checkDefault checks the default value that v has after an update against the type that it has then: a run without the
// variable uses the default as it is.
func checkDefault(v registry.Variable, update registry.VariableUpdate) error {
	if update.Type != nil {
		v.Type = *update.Type
	}
	if update.IsMulti != nil {
		v.IsMulti = *update.IsMulti
	}
	if len(update.Values) > 0 {
		if _, err := field(map[string]json.RawMessage{"values": update.Values}, "values", &v.Values); err != nil {
			return validation("values", "invalid_input", "Expected a list of items.")
		}
	}
	raw := update.Default
	if len(raw) == 0 {
		raw = appendJSON(nil, v.Default)
	}
	value, err := decodeValue(raw)
	if err != nil || value == nil || !slices.Contains(variableTypes, v.Type) {
		return err
	}
	if _, err := checkVariable(&v, value); err != nil {
		return validation("default_value", "invalid_input", "The default value does not fit the variable: %s", err)
	}
	return nil
}

var variableTypes = []registry.VariableType{
	registry.VariableString, registry.VariableNumber, registry.VariableBoolean, registry.VariableList, registry.VariableDate,
}

// readVariable reads the writable fields of a variable.
func (rq *request) readVariable() (registry.VariableUpdate, error) {
	var update registry.VariableUpdate
	body, err := readBody(rq.r)
	if err != nil {
		return update, err
	}
	defer returnBody(body)
	fields, err := decodeObject(body.Bytes())
	if err != nil {
		return update, err
	}
	for _, name := range []string{"values_query", "values_query_connection_id"} {
		if raw, ok := fields[name]; ok && !isNull(raw) {
			return update, validation(name, "invalid_input", "%s is not supported; list the values.", name)
		}
	}
	update.Default, update.Values = bytes.Clone(fields["default_value"]), bytes.Clone(fields["values"])
	return update, errors.Join(
		optional(fields, "name", &update.Name), optional(fields, "type", &update.Type), optional(fields, "is_multi", &update.IsMulti))
}
