package module

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
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
	record := variableRecord{
		ID: v.ID, Name: v.Name, Type: string(v.Type), DefaultValue: v.Default, Values: v.Values, IsMulti: v.IsMulti,
		CodeName: v.CodeName, CreatedBy: rq.user(v.CreatedBy), CreatedAt: v.CreatedAt,
	}
	if v.Type == registry.VariableList {
		record.Values = orEmpty(v.Values)
	}
	return record
}

// variablesPage is how many variables a page holds: this list counts pages, not rows.
const variablesPage = 500

func (rq *request) listVariables() error {
	all := rq.Snapshot.Variables(rq.Project.ID)
	pages := max(1, (len(all)+variablesPage-1)/variablesPage)
	number := 1
	switch asked := rq.r.URL.Query().Get("page"); asked {
	case "":
	case "last":
		number = pages
	default:
		var err error
		if number, err = strconv.Atoi(asked); err != nil || number < 1 || number > pages {
			return api.NotFound("Invalid page.")
		}
	}
	from := (number - 1) * variablesPage
	out := api.Page[variableRecord]{Count: len(all), Results: []variableRecord{}}
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
	v := rq.Snapshot.VariableByID(rq.Project.ID, canonicalID(rq.at.Name))
	if v == nil {
		return api.NotFound("Not found.")
	}
	rq.reply(http.StatusOK, rq.recordVariable(v))
	return nil
}

func (rq *request) createVariable() error {
	update, err := rq.readVariable()
	if err != nil {
		return err
	}
	v, err := rq.rt.registry.CreateVariable(rq.r.Context(), registry.NewVariable{
		Project: rq.Project.ID, Name: deref(update.Name), Type: deref(update.Type), Default: update.Default, Values: update.Values,
		IsMulti: deref(update.IsMulti), CreatedBy: rq.Key.ID, Check: fitDefault,
	}, rq.Start)
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
	update.Check = fitDefault
	if rq.r.Method == http.MethodPut { // which says what the whole variable is to be
		if err := errors.Join(needField("name", update.Name), needField("type", update.Type)); err != nil {
			return err
		}
	}
	v, err := rq.rt.registry.UpdateVariable(rq.r.Context(), rq.Project.ID, canonicalID(rq.at.Name), update)
	if err != nil {
		return err
	}
	rq.reply(http.StatusOK, rq.recordVariable(v))
	return nil
}

func (rq *request) deleteVariable() error {
	if err := rq.rt.registry.DeleteVariable(rq.r.Context(), rq.Project.ID, canonicalID(rq.at.Name)); err != nil {
		return err
	}
	rq.replyNothing()
	return nil
}

// needField refuses a field that was not given.
func needField[T any](name string, given *T) error {
	if given == nil {
		return api.Invalid(name, "required", "This field is required.")
	}
	return nil
}

// canonicalID gives a UUID in the form in which ids are kept, and other texts as they are.
func canonicalID(text string) string {
	if id, err := uuid.Parse(text); err == nil {
		return id.String()
	}
	return text
}

// fitDefault checks the default value of a variable against its type, and gives it the form that the value of a run would have: a run
// without the variable uses the default as it is. It is a registry.VariableCheck.
func fitDefault(v *registry.Variable) error {
	if v.Default == nil {
		return nil
	}
	value, err := api.DecodeValue(jsontext.Append(nil, v.Default))
	if f, ok := v.Default.(float64); ok {
		value = json.Number(strconv.FormatFloat(f, 'e', -1, 64)) // not as an integer that is too large for one
	}
	if err == nil {
		value, err = checkVariable(v, onlyItem(v, value))
	}
	if err == nil {
		v.Default, err = registry.DecodeJSON(jsontext.Append(nil, value))
	}
	if err != nil {
		return misfit(err)
	}
	return nil
}

func misfit(err error) error {
	return api.Invalid("default_value", "invalid_input", "The default value does not fit the variable: %s", err)
}

// readVariable reads the writable fields of a variable.
func (rq *request) readVariable() (registry.VariableUpdate, error) {
	var update registry.VariableUpdate
	fields, err := rq.readObject()
	if err != nil {
		return update, err
	}
	for _, name := range []string{"values_query", "values_query_connection_id"} {
		if raw, ok := fields[name]; ok && !api.IsNull(raw) {
			return update, api.Invalid(name, "invalid_input", "%s is not supported; list the values.", name)
		}
	}
	update.Default, update.Values = fields["default_value"], fields["values"]
	if value, err := api.DecodeValue(update.Default); err == nil {
		if n, ok := value.(json.Number); ok && !isNumber(string(n)) { // which the registry would round
			return update, misfit(fmt.Errorf("%s is not a number", n))
		}
	}
	for _, name := range []string{"name", "type"} {
		if raw, ok := fields[name]; ok && api.IsNull(raw) {
			return update, api.Invalid(name, "null", "This field may not be null.")
		}
	}
	err = errors.Join(
		optional(fields, "name", &update.Name), optional(fields, "type", &update.Type), optional(fields, "is_multi", &update.IsMulti))
	if err == nil && update.Name != nil && strings.TrimSpace(*update.Name) == "" {
		err = api.Invalid("name", "blank", "This field may not be blank.")
	}
	return update, err
}
