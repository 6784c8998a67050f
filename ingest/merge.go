package ingest

import (
	"context"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// mergedID returns the other distinct id that an event joins to its own, and whether it does so even if the other one is identified. The id is empty if there
// is nothing to join.
func (p *people) mergedID(r *record.Record) (id string, force bool) {
	id, force = p.otherID(r)
	if id == r.DistinctID || illegalID(id) || illegalID(r.DistinctID) {
		return "", false
	}
	return id, force
}

// otherID returns the distinct id that a record names beside its own.
func (p *people) otherID(r *record.Record) (id string, force bool) {
	if r.OtherID != "" && r.OtherID != r.DistinctID {
		return r.OtherID, false
	}
	name := ""
	switch r.Event {
	case "$identify":
		name = "$anon_distinct_id"
	case "$create_alias":
		name = "alias"
	case "$merge_dangerously":
		name, force = "alias", true
	default:
		return "", false
	}
	id, _ = r.Properties.Get(name).Text()
	if p.captured {
		id = cut(id)
	}
	return id, force
}

// maxDistinctID is how many characters of a distinct id are significant.
const maxDistinctID = 200

// cut shortens a distinct id to its significant part.
func cut(id string) string {
	if len(id) <= maxDistinctID {
		return id
	}
	count := 0
	for at := range id {
		if count++; count > maxDistinctID {
			return id[:at]
		}
	}
	return id
}

// Distinct ids that many people have by mistake (contract capture.md section 9), or in posthog-js's cookieless mode: compared without regard to case, and
// exactly.
var (
	illegalInAnyCase = []string{
		"anonymous", "guest", "distinctid", "distinct_id", "id", "not_authenticated", "email", "undefined", "true", "false",
	}
	illegalExactly = []string{"[object Object]", "NaN", "None", "none", "null", "0", "undefined", "$posthog_cookieless"}

	illegal, illegalLower = quotedToo(illegalExactly), quotedToo(illegalInAnyCase)
)

// quotedToo returns a set of texts, each with and without quotes.
func quotedToo(texts []string) map[string]bool {
	set := make(map[string]bool, 3*len(texts))
	for _, text := range texts {
		set[text], set["'"+text+"'"], set[`"`+text+`"`] = true, true, true
	}
	return set
}

// illegalID reports whether a distinct id comes from a mistake in a client, so that it must not merge people.
func illegalID(id string) bool {
	return strings.TrimSpace(id) == "" || illegal[id] || illegalLower[strings.ToLower(id)]
}

// merge applies the merge that an event asks for.
func (p *people) merge(ctx context.Context, r *record.Record) error {
	other, force := p.mergedID(r)
	if other == "" {
		return nil
	}
	source := p.of(other)
	if p.captured && source != nil && p.of(r.DistinctID) == nil {
		p.assign(r.Line, p.id(r.DistinctID), source)
	}
	target := p.owner(r.Line, r.DistinctID)
	if source == nil || !source.identified || force {
		if err := p.join(ctx, r.Line, target, other); err != nil {
			return err
		}
	}
	if !target.identified {
		target.identified = true
		target.change(r.Line)
	}
	return nil
}
