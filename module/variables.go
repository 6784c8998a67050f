package module

import (
	"bytes"
	"errors"
	"net/http"
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
	CodeName     string    `json:"code_name"`
	CreatedBy    *string   `json:"created_by"`
	CreatedAt    time.Time `json:"created_at"`
}

func recordVariable(v *registry.Variable) variableRecord {
	return variableRecord{
		ID: v.ID, Name: v.Name, Type: string(v.Type), DefaultValue: v.Default, Values: v.Values, IsMulti: v.IsMulti,
		CodeName: v.CodeName, CreatedBy: orNull(v.CreatedBy), CreatedAt: v.CreatedAt,
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
		out.Results = append(out.Results, recordVariable(v))
	}
	if number < pages {
		out.Next = rq.numberedPage(number + 1)
	}
	if number > 1 {
		out.Previous = rq.numberedPage(number - 1)
	}
	writeJSON(rq.w, http.StatusOK, out)
	return nil
}

func (rq *request) getVariable() error {
	v := rq.snap.VariableByID(rq.project.ID, rq.at.name)
	if v == nil {
		return notFound("Not found.")
	}
	writeJSON(rq.w, http.StatusOK, recordVariable(v))
	return nil
}

func (rq *request) createVariable() error {
	update, err := rq.readVariable()
	if err != nil {
		return err
	}
	v, err := rq.rt.registry.CreateVariable(rq.r.Context(), registry.NewVariable{
		Project: rq.project.ID, Name: deref(update.Name), Type: deref(update.Type), Default: update.Default, Values: update.Values,
		IsMulti: deref(update.IsMulti), CreatedBy: rq.key.ID,
	}, time.Now())
	if err != nil {
		return err
	}
	writeJSON(rq.w, http.StatusCreated, recordVariable(v))
	return nil
}

func (rq *request) updateVariable() error {
	update, err := rq.readVariable()
	if err != nil {
		return err
	}
	v, err := rq.rt.registry.UpdateVariable(rq.r.Context(), rq.project.ID, rq.at.name, update)
	if err != nil {
		return err
	}
	writeJSON(rq.w, http.StatusOK, recordVariable(v))
	return nil
}

func (rq *request) deleteVariable() error {
	if err := rq.rt.registry.DeleteVariable(rq.r.Context(), rq.project.ID, rq.at.name); err != nil {
		return err
	}
	rq.w.WriteHeader(http.StatusNoContent)
	return nil
}

// readVariable reads the writable fields of a variable.
func (rq *request) readVariable() (registry.VariableUpdate, error) {
	var update registry.VariableUpdate
	if err := checkMediaType(rq.r); err != nil {
		return update, err
	}
	body, err := readBody(rq.r)
	if err != nil {
		return update, err
	}
	defer returnBody(body)
	fields, err := decodeObject(body.Bytes())
	if err != nil {
		return update, err
	}
	update.Default, update.Values = bytes.Clone(fields["default_value"]), bytes.Clone(fields["values"])
	return update, errors.Join(
		optional(fields, "name", &update.Name), optional(fields, "type", &update.Type), optional(fields, "is_multi", &update.IsMulti))
}
