package module

import (
	"cmp"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/changes"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// comparison compares the versions that a write puts in each other's place, and refuses the write when it was asked to.
type comparison struct {
	snap           *registry.Snapshot // whose variables count
	before         *registry.Snapshot // the same for the version that gives way; nil: snap
	project        int64
	refuseBreaking bool
	attr           string           // the field of the request that a refusal names
	found          *changes.Changes // nil when no version takes another's place
}

// check is a registry.VersionCheck.
func (c *comparison) check(from, to *registry.Version) error {
	c.compare(from, to)
	if !c.refuseBreaking || len(c.found.Breaking) == 0 {
		return nil
	}
	details := make([]string, len(c.found.Breaking))
	for i, change := range c.found.Breaking {
		details[i] = change.Detail
	}
	refused := api.Invalid(c.attr, "breaking_change", "Callers of version %d would break: %s.", from.Number, strings.Join(details, "; "))
	refused.Extra = c.found
	return refused
}

// compare notes what a change from one version to another means for callers.
func (c *comparison) compare(from, to *registry.Version) {
	side := func(v *registry.Version, snap *registry.Snapshot) changes.Side {
		return changes.Side{Version: v, Variables: func(codeName string) *registry.Variable { return snap.VariableByCode(c.project, codeName) }}
	}
	c.found = changes.Between(side(from, cmp.Or(c.before, c.snap)), side(to, c.snap))
}
