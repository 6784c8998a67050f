package module

import (
	"encoding/json"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Names for helpers of package api that variables.go, cohorts.go and definitions.go still use.

type (
	user            = api.User
	groupTypeRecord = api.GroupType
)

func derivedID(kind, id string) string { return api.DerivedID(kind, id) }

func (rq *request) user(key string) *user { return rq.User(key) }

func (rq *request) recordTeam() struct{ GroupTypes []groupTypeRecord } {
	return struct{ GroupTypes []groupTypeRecord }{rq.GroupTypes()}
}

func optional[T any](fields map[string]json.RawMessage, name string, out **T) error {
	return api.Optional(fields, name, out)
}

func orNil(t time.Time) *time.Time { return api.OrNil(t) }

func isNumber(text string) bool { return api.IsNumber(text) }

func checkVariable(def *registry.Variable, value any) (any, error) {
	return api.CheckVariable(def, value)
}

func onlyItem(def *registry.Variable, value any) any { return api.OnlyItem(def, value) }
