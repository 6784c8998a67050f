package endpoints

import (
	"context"
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// materialization is the state of a materialized table, which no endpoint has here: results are cached instead.
type materialization struct {
	Name           string `json:"name"`
	Enabled        bool   `json:"enabled"`
	Ready          bool   `json:"ready"`
	CanMaterialize bool   `json:"can_materialize"`
	Reason         string `json:"reason"`
}

// noTables says why no endpoint can be materialized.
const noTables = "Results are cached instead; set data_freshness_seconds."

func noMaterialization(endpoint string) materialization {
	return materialization{Name: endpoint, Reason: noTables}
}

// getMaterialization answers GET endpoints/:name/materialization_status/: contract section 5.1.
func getMaterialization(_ context.Context, c api.Caller, in api.Input) (api.Response, error) {
	e, err := find(&c, in.At.Name)
	if err != nil {
		return api.Response{}, err
	}
	if _, _, err := askedVersion(in, e); err != nil {
		return api.Response{}, err
	}
	return api.JSON(http.StatusOK, noMaterialization(e.Name)), nil
}

// materializationPreview is how a version would be materialized. Without tables all of it is empty.
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
func previewMaterialization(_ context.Context, c api.Caller, in api.Input) (api.Response, error) {
	e, err := find(&c, in.At.Name)
	if err != nil {
		return api.Response{}, err
	}
	fields, err := in.ReadFields("version", "bucket_overrides")
	if err != nil {
		return api.Response{}, err
	}
	var number int
	asked, err := api.Field(fields, "version", &number)
	if err != nil {
		return api.Response{}, err
	}
	if _, err := api.Field(fields, "bucket_overrides", new(map[string]string)); err != nil {
		return api.Response{}, err
	}
	if _, err := versionOf(e, number, asked); err != nil {
		return api.Response{}, err
	}
	return api.JSON(http.StatusOK, materializationPreview{Reason: noTables, RangePairs: []string{}, Aggregates: []string{}}), nil
}
