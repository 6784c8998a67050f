package module

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// materialization is the state of a materialised table, which no endpoint has here: results are cached instead.
type materialization struct {
	Name           string `json:"name"`
	Enabled        bool   `json:"enabled"`
	Ready          bool   `json:"ready"`
	CanMaterialize bool   `json:"can_materialize"`
	Reason         string `json:"reason"`
}

// noTables says why no endpoint can be materialised.
const noTables = "Results are cached instead; set data_freshness_seconds."

func noMaterialization(endpoint string) materialization {
	return materialization{Name: endpoint, Reason: noTables}
}

// getMaterialization answers GET endpoints/:name/materialization_status/: contract section 5.1.
func (rq *request) getMaterialization() error {
	e, err := rq.endpoint()
	if err != nil {
		return err
	}
	number, asked, err := rq.queryInt("version")
	if err != nil {
		return err
	}
	if _, err := versionOf(e, number, asked); err != nil {
		return err
	}
	rq.reply(http.StatusOK, noMaterialization(e.Name))
	return nil
}

// materializationPreview is how a version would be materialised. Without tables all of it is empty.
type materializationPreview struct {
	CanMaterialize        bool     `json:"can_materialize"`
	Reason                string   `json:"reason"`
	TransformedQuery      *string  `json:"transformed_query"`
	ExecutionQuery        *string  `json:"execution_query"`
	DisplayExecutionQuery *string  `json:"display_execution_query"`
	RangePairs            []string `json:"range_pairs"`
	Aggregates            []string `json:"aggregates"`
}

// previewMaterialization answers POST endpoints/:name/materialization_preview/: contract section 5.1.
func (rq *request) previewMaterialization() error {
	e, err := rq.endpoint()
	if err != nil {
		return err
	}
	fields, err := rq.readFields("version", "bucket_overrides")
	if err != nil {
		return err
	}
	var number int
	asked, err := field(fields, "version", &number)
	if err != nil {
		return err
	}
	if _, err := field(fields, "bucket_overrides", new(map[string]string)); err != nil {
		return err
	}
	if _, err := versionOf(e, number, asked); err != nil {
		return err
	}
	rq.reply(http.StatusOK, materializationPreview{Reason: noTables, RangePairs: []string{}, Aggregates: []string{}})
	return nil
}

// versionOf finds the version that a request asks for, else the current one.
func versionOf(e *registry.Endpoint, number int, asked bool) (*registry.Version, error) {
	v := e.Version(number)
	if v == nil || asked && number == 0 { // 0 would stand for the current one
		return nil, runError(http.StatusNotFound, "invalid_request", "not_found", fmt.Sprintf("Version %d not found", number))
	}
	return v, nil
}

// readFields reads the body as an object that may have these fields and no others. The result does not share the body's memory.
func (rq *request) readFields(allowed ...string) (map[string]json.RawMessage, error) {
	body, err := readBody(rq.r)
	if err != nil {
		return nil, err
	}
	defer returnBody(body)
	fields, err := decodeObject(slices.Clone(body.Bytes()))
	if err != nil {
		return nil, err
	}
	for _, name := range sortedNames(fields) {
		if !slices.Contains(allowed, name) {
			return nil, validation(name, "invalid_input", "Extra inputs are not permitted")
		}
	}
	return fields, nil
}
