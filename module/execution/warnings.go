package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

const (
	// namesWait is the longest that looking for the names of a query may take. What is not found out by then is not warned of.
	namesWait = time.Second
	// maxChecked bounds how many names of a query ClickHouse is asked about.
	maxChecked = 8
	// maxSurveyed is the longest text, in bytes, whose names are looked at, and quickCompile how long it may have taken to
	// compile: a query that is costly to compile is not looked at twice.
	maxSurveyed  = 16 << 10
	quickCompile = 20 * time.Millisecond
	// maxSeen is how many names of a project are remembered.
	maxSeen = 10_000
	// suggestionsAge is how old the names may be that are suggested.
	suggestionsAge = 5 * time.Minute
)

// Sightings are the names that were found in the data of projects. Only what is there is remembered: what is not may come.
type Sightings struct {
	mu        sync.Mutex
	byProject map[int64]*projectSightings
}

type projectSightings struct {
	seen   map[schema.PropertyKey]bool // an event has no scope
	events []string                    // for suggestions
	listed time.Time                   // when events was asked for
}

func (s *Sightings) of(project int64) *projectSightings {
	if s.byProject == nil {
		s.byProject = map[int64]*projectSightings{}
	}
	p := s.byProject[project]
	if p == nil || len(p.seen) >= maxSeen {
		p = &projectSightings{seen: map[schema.PropertyKey]bool{}}
		s.byProject[project] = p
	}
	return p
}

func sightingOf(m *compiler.Mention) schema.PropertyKey {
	key := m.Key
	key.Name = m.Name
	return key
}

// unseen leaves the names that were not found yet.
func (s *Sightings) unseen(project int64, mentions []compiler.Mention) []compiler.Mention {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.of(project).seen
	return slices.DeleteFunc(mentions, func(m compiler.Mention) bool { return seen[sightingOf(&m)] })
}

func (s *Sightings) note(project int64, m *compiler.Mention) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(project).seen[sightingOf(m)] = true
}

// warnings finds out what the author of a query should know though it ran: contract section 1.6 has their form. It is called with
// the query's place on ClickHouse still taken, and asks ClickHouse only about names that were never found before.
func (x *Computation) warnings(ctx context.Context, place *admission.Place, done *Details) []byte {
	db, err := x.exec.Database(ctx, x.Snapshot.Schema(x.Project.ID))
	if err != nil {
		return nil
	}
	env := x.exec.compilerEnv(x.Snapshot, x.Project.ID, db, time.Now())
	list := compiler.Lowered(x.query.Node, env)
	list = append(list, compiler.Reversed(x.query.Node, env)...)
	if insight, ok := x.query.Node.(query.Insight); ok && done.Insight.reversed {
		list = append(list, compiler.EndsBeforeItBegins(insight.Parts().ToField()))
	}
	// The callers of endpoints are not their authors, and the names in a project are no business of theirs.
	if x.query.Endpoint == nil && len(x.query.Text) <= maxSurveyed && done.Compile <= quickCompile {
		list = append(list, x.unseenNames(ctx, place, env)...)
	}
	if len(list) == 0 {
		return nil
	}
	return jsontext.Append(nil, list)
}

// unseenNames warns of events and properties that the project does not have. Without an answer of ClickHouse it warns of nothing.
func (x *Computation) unseenNames(ctx context.Context, place *admission.Place, env compiler.Env) (list []compiler.Warning) {
	mentions, err := compiler.Mentions(x.query.Node, env)
	if err != nil {
		return nil
	}
	mentions = slices.DeleteFunc(mentions, func(m compiler.Mention) bool {
		_, defined := env.Database.Properties[m.Key]
		return !m.IsEvent() && (defined || m.Storage.Kind == schema.StringColumn) // to look into every text of a column takes too long
	})
	mentions = x.exec.Names.unseen(x.Project.ID, mentions)
	if len(mentions) == 0 {
		return nil
	}
	mentions = mentions[:min(len(mentions), maxChecked)]
	ctx, cancel := context.WithTimeout(ctx, namesWait)
	defer cancel()
	missing, err := x.missingNames(ctx, place, env, mentions)
	if err != nil {
		return nil
	}
	for i := range missing {
		list = append(list, compiler.Unseen(&missing[i], x.query.Text, x.suggestions(ctx, place, env, &missing[i])))
	}
	return list
}

// missingNames asks ClickHouse which of some names are nowhere in the project's data, and remembers the others.
func (x *Computation) missingNames(ctx context.Context, place *admission.Place, env compiler.Env, mentions []compiler.Mention) (missing []compiler.Mention, err error) {
	events := slices.DeleteFunc(slices.Clone(mentions), func(m compiler.Mention) bool { return !m.IsEvent() })
	if len(events) > 0 {
		found, err := x.askNames(ctx, place, env, compiler.Existence(events))
		if err != nil {
			return nil, err
		}
		for i := range events {
			if slices.Contains(found, events[i].Name) {
				x.exec.Names.note(x.Project.ID, &events[i])
			} else {
				missing = append(missing, events[i])
			}
		}
	}
	for i := range mentions {
		if mentions[i].IsEvent() {
			continue
		}
		found, err := x.askNames(ctx, place, env, compiler.Existence(mentions[i:i+1]))
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			x.exec.Names.note(x.Project.ID, &mentions[i])
		} else {
			missing = append(missing, mentions[i])
		}
	}
	return missing, nil
}

// suggestions are names that may have been meant in the place of one that is not there.
func (x *Computation) suggestions(ctx context.Context, place *admission.Place, env compiler.Env, m *compiler.Mention) (names []string) {
	if !m.IsEvent() {
		for key := range env.Database.Properties {
			if key.Scope == m.Key.Scope && key.Group == m.Key.Group {
				names = append(names, key.Name)
			}
		}
		return names
	}
	all := x.exec.Names
	all.mu.Lock()
	known := all.of(x.Project.ID)
	names, fresh := known.events, time.Since(known.listed) < suggestionsAge
	all.mu.Unlock()
	if fresh {
		return names
	}
	listed, err := x.askNames(ctx, place, env, taxonomy.Events())
	if err != nil {
		return names
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	known = all.of(x.Project.ID)
	known.events, known.listed = listed, time.Now()
	return listed
}

// askNames runs a query of our own in the place that the caller's query has, and gives the texts in the first column.
func (x *Computation) askNames(ctx context.Context, place *admission.Place, env compiler.Env, node *query.HogQL) ([]string, error) {
	compiled, err := compiler.Compile(node, env)
	if err != nil {
		return nil, err
	}
	rows := cache.NewBuilder(cache.Limits{MaxBytes: maxNameBytes})
	q := clickhouse.Query{
		SQL: compiled.SQL, Params: Params(compiled), Project: x.Project.ID,
		Comment: string(jsontext.Append(nil, map[string]any{"product": "caddy-analytics", "project": x.Project.ID, "names": true})),
	}
	if _, err := x.exec.Warehouse.Query(ctx, place, q, sink{rows: rows}); err != nil {
		return nil, fmt.Errorf("looking for names: %w", err)
	}
	var names []string
	for row := range rows.Result().Rows() {
		var cells []any
		if err := json.Unmarshal(row, &cells); err != nil || len(cells) == 0 {
			return nil, errors.Join(errors.New("BUG: a row of names that is none"), err)
		}
		names = append(names, fmt.Sprint(cells[0]))
	}
	return names, nil
}

// maxNameBytes is the most bytes of names that are read at once.
const maxNameBytes = 8 << 20
