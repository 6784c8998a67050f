package publish

import (
	"cmp"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/references"
	"github.com/caddy-analytics/caddy-analytics/module/changes"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Comparison compares a version with the one that a write replaces it with, and refuses the write if the request says so.
type Comparison struct {
	Snapshot       *registry.Snapshot // holds the variables' definitions
	Before         *registry.Snapshot // the same for the replaced version; nil means Snapshot
	References     *references.Index
	Project        int64
	RefuseBreaking bool
	Attr           string           // the request field that a refusal names
	Found          *changes.Changes // nil if no version is replaced
}

// Check is a registry.VersionCheck.
func (c *Comparison) Check(from, to *registry.Version) error {
	c.Compare(from, to)
	if !c.RefuseBreaking || len(c.Found.Breaking) == 0 {
		return nil
	}
	details := make([]string, len(c.Found.Breaking))
	for i, change := range c.Found.Breaking {
		details[i] = change.Detail
	}
	refused := api.Invalid(c.Attr, "breaking_change", "Callers of version %d would break: %s.", from.Number, strings.Join(details, "; "))
	refused.Extra = c.Found
	return refused
}

// Compare records what replacing one version with another changes for callers.
func (c *Comparison) Compare(from, to *registry.Version) {
	side := func(v *registry.Version, snap *registry.Snapshot) changes.Side {
		return changes.Side{
			Version: v, Variables: func(codeName string) *registry.Variable { return snap.VariableByCode(c.Project, codeName) },
			Uses: c.References.UsesOf(c.Snapshot, c.Project, v.Query),
		}
	}
	c.Found = changes.Between(side(from, cmp.Or(c.Before, c.Snapshot)), side(to, c.Snapshot))
}
