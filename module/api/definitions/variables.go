package definitions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// variableRecord is an insight variable in JSON: contract api.md, section 4.6.
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
	CreatedBy    *api.User `json:"created_by"`
	CreatedAt    time.Time `json:"created_at"`
}

func recordVariable(c *api.Caller, v *registry.Variable) variableRecord {
	record := variableRecord{
		ID: v.ID, Name: v.Name, Type: string(v.Type), DefaultValue: v.Default, Values: v.Values, IsMulti: v.IsMulti,
		CodeName: v.CodeName, CreatedBy: c.User(v.CreatedBy), CreatedAt: v.CreatedAt,
	}
	if v.Type == registry.VariableList && v.Values == nil {
		record.Values = []any{}
	}
	return record
}

// variablesPage is how many variables are on a page. This list numbers its pages instead of using offsets.
const variablesPage = 500

func (d *Definitions) listVariables(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	_, count := c.Snapshot.VariablePage(c.Project.ID, 0, 0)
	pages := max(1, (count+variablesPage-1)/variablesPage)
	number := 1
	switch asked := in.URL.Query().Get("page"); asked {
	case "":
	case "last":
		number = pages
	default:
		var err error
		if number, err = strconv.Atoi(asked); err != nil || number < 1 || number > pages {
			return nil, api.NotFound("Invalid page.")
		}
	}
	page, _ := c.Snapshot.VariablePage(c.Project.ID, (number-1)*variablesPage, variablesPage)
	out := api.Page[variableRecord]{Count: count, Results: []variableRecord{}}
	for _, v := range page {
		out.Results = append(out.Results, recordVariable(c, v))
	}
	out.Next, out.Previous = in.NumberedPages(number, pages)
	return api.JSON(http.StatusOK, out), nil
}

func (d *Definitions) getVariable(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	v := c.Snapshot.VariableByID(c.Project.ID, api.CanonicalID(in.At.Name))
	if v == nil {
		return nil, api.NotFound("Not found.")
	}
	return api.JSON(http.StatusOK, recordVariable(c, v)), nil
}

func (d *Definitions) createVariable(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	update, err := readVariable(in)
	if err != nil {
		return nil, err
	}
	v, err := d.Registry.CreateVariable(ctx, registry.NewVariable{
		Project: c.Project.ID, Name: api.Deref(update.Name), Type: api.Deref(update.Type), Default: update.Default, Values: update.Values,
		IsMulti: api.Deref(update.IsMulti), CreatedBy: c.Key.ID, Check: api.FitDefault,
	}, c.Start)
	if err != nil {
		return nil, err
	}
	return api.JSON(http.StatusCreated, recordVariable(c, v)), nil
}

func (d *Definitions) updateVariable(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	update, err := readVariable(in)
	if err != nil {
		return nil, err
	}
	update.Check = api.FitDefault
	if in.Method == http.MethodPut { // PUT replaces the whole variable
		if err := errors.Join(needField("name", update.Name), needField("type", update.Type)); err != nil {
			return nil, err
		}
	}
	v, err := d.Registry.UpdateVariable(ctx, c.Project.ID, api.CanonicalID(in.At.Name), update)
	if err != nil {
		return nil, err
	}
	return api.JSON(http.StatusOK, recordVariable(c, v)), nil
}

func (d *Definitions) deleteVariable(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	if err := d.Registry.DeleteVariable(ctx, c.Project.ID, api.CanonicalID(in.At.Name)); err != nil {
		return nil, err
	}
	return api.NoContent(), nil
}

// needField refuses a missing field.
func needField[T any](name string, given *T) error {
	if given == nil {
		return api.Invalid(name, "required", "This field is required.")
	}
	return nil
}

// isEmpty reports whether a value is null or a blank text, which clients of PostHog also send for null.
func isEmpty(raw json.RawMessage) bool {
	var text string
	return api.IsNull(raw) || json.Unmarshal(raw, &text) == nil && strings.TrimSpace(text) == ""
}

// readVariable reads the writable fields of a variable.
func readVariable(in *api.Input) (registry.VariableUpdate, error) {
	var update registry.VariableUpdate
	fields, err := in.ReadObject()
	if err != nil {
		return update, err
	}
	for _, name := range []string{"values_query", "values_query_connection_id"} {
		if raw, ok := fields[name]; ok && !isEmpty(raw) {
			return update, api.Invalid(name, "invalid_input", "%s is not supported; list the values.", name)
		}
	}
	all := &api.Fields{All: fields}
	update.Default, _ = all.Take("default_value", true)
	update.Values, _ = all.TakeList("values", true)
	if value, err := api.DecodeValue(update.Default); err == nil {
		if n, ok := value.(json.Number); ok && !api.IsNumber(string(n)) { // the registry would round it
			return update, api.BadDefault(fmt.Errorf("%s is not a number", n))
		}
	}
	for _, name := range []string{"name", "type"} {
		if raw, ok := fields[name]; ok && api.IsNull(raw) {
			return update, api.Invalid(name, "null", "This field may not be null.")
		}
	}
	err = errors.Join(
		api.Optional(fields, "name", &update.Name), api.Optional(fields, "type", &update.Type), api.Optional(fields, "is_multi", &update.IsMulti))
	if err == nil && update.Name != nil && strings.TrimSpace(*update.Name) == "" {
		err = api.Invalid("name", "blank", "This field may not be blank.")
	}
	return update, err
}
