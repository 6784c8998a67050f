package publish

import (
	"cmp"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/references"
	"github.com/caddy-analytics/caddy-analytics/module/changes"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Comparison compares the versions of which a write puts one in the place of the other, and refuses the write when it was asked to.
type Comparison struct {
	Snapshot       *registry.Snapshot // whose variables count
	Before         *registry.Snapshot // the same for the version that is replaced; nil: Snapshot
	References     *references.Index
	Project        int64
	RefuseBreaking bool
	Attr           string           // the field of the request that a refusal names
	Found          *changes.Changes // nil when no version is replaced
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

// Compare notes what a change from one version to another means for callers.
func (c *Comparison) Compare(from, to *registry.Version) {
	side := func(v *registry.Version, snap *registry.Snapshot) changes.Side {
		return changes.Side{
			Version: v, Variables: func(codeName string) *registry.Variable { return snap.VariableByCode(c.Project, codeName) },
			Uses: c.References.UsesOf(c.Snapshot, c.Project, v.Query),
		}
	}
	c.Found = changes.Between(side(from, cmp.Or(c.Before, c.Snapshot)), side(to, c.Snapshot))
}
