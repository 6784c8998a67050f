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
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

const (
	// namesWait is the longest that checking the names of a query may take. Names not checked by then cause no warning.
	namesWait = time.Second
	// maxChecked is how many names of a query ClickHouse is asked about at most.
	maxChecked = 8
	// maxSurveyed is the longest text, in bytes, whose names are checked, and quickCompile how much processor time it may have taken to compile: a query
	// that is costly to compile is not examined again.
	maxSurveyed  = 16 << 10
	quickCompile = 20 * time.Millisecond
	// maxSeen is how many names of a project are remembered.
	maxSeen = 10_000
	// suggestionsAge is how old the names for suggestions may be.
	suggestionsAge = 5 * time.Minute
)

// Sightings are the names found in the data of projects. Only names that exist are remembered: the others may still come.
type Sightings struct {
	mu        sync.Mutex
	byProject map[int64]*projectSightings
}

type projectSightings struct {
	seen   map[schema.PropertyKey]bool // the key of an event has no scope
	events []string                    // for suggestions
	listed time.Time                   // when events was read
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

// unseen returns the names that were not found yet.
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

// warnings returns what the author of a query should know although it ran: contract api.md, section 1.6 has the format. It is called while the query still
// holds its place on ClickHouse, if it took one, and asks ClickHouse only about names never found before.
func (x *Computation) warnings(ctx context.Context, at *turn, done *Details) []byte {
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
	// The callers of endpoints are not their authors, and have no business with the names in a project.
	if x.query.Endpoint == nil && len(x.query.Text) <= maxSurveyed && x.compiles.used <= quickCompile {
		list = append(list, x.unseenNames(ctx, at, env)...)
	}
	if len(list) == 0 {
		return nil
	}
	return jsontext.Append(nil, list)
}

// lookup looks for names in a project's data. It uses a place that its caller holds.
type lookup struct {
	exec    *Executor
	project int64
	place   *admission.Place
	env     compiler.Env
}

// unseenNames warns of events and properties that the project does not have. If ClickHouse does not answer, there are no warnings.
func (x *Computation) unseenNames(ctx context.Context, at *turn, env compiler.Env) []compiler.Warning {
	mentions, err := compiler.Mentions(x.query.Node, env)
	if err != nil {
		return nil
	}
	mentions = slices.DeleteFunc(mentions, func(m compiler.Mention) bool {
		_, defined := env.Database.Properties[m.Key]
		return !m.IsEvent() && (defined || m.Storage.Kind == schema.StringColumn) // searching every text of a column takes too long
	})
	mentions = x.exec.Names.unseen(x.Project.ID, mentions)
	if len(mentions) == 0 || at.takeSpare(ctx) != nil {
		return nil
	}
	return lookup{x.exec, x.Project.ID, at.place, env}.warnings(ctx, mentions, x.query.Text)
}

// UnseenEvents warns of the events in a text that the project does not have. It asks ClickHouse only about names never found before, which counts as
// a query; if that is refused or there is no answer, there are no warnings.
func (e *Executor) UnseenEvents(ctx context.Context, c *Caller, asked *query.Metadata) (list []compiler.Notice) {
	if asked.Language != query.LanguageHogQL || len(asked.Query) > maxSurveyed {
		return nil
	}
	db, err := e.Database(ctx, c.Snapshot.Schema(c.Project.ID))
	if err != nil {
		return nil
	}
	env := e.compilerEnv(c.Snapshot, c.Project.ID, db, c.Start)
	mentions, err := compileWith(ctx, e.CompilesOf(c), env, func(env compiler.Env) ([]compiler.Mention, error) {
		return compiler.Mentions(asked.HogQL(), env)
	})
	mentions = slices.DeleteFunc(mentions, func(m compiler.Mention) bool { return !m.IsEvent() })
	if mentions = e.Names.unseen(c.Project.ID, mentions); err != nil || len(mentions) == 0 {
		return nil
	}
	place, err := e.admit(ctx, c.quotas(e.Limits), admission.Request{Project: c.Project.ID, Awaited: admission.Awaited, Wait: namesWait}, c.Start)
	if err != nil {
		return nil
	}
	defer place.Leave()
	for _, w := range (lookup{e, c.Project.ID, place, env}).warnings(ctx, mentions, asked.Query) {
		list = append(list, w.Notice)
	}
	return list
}

// warnings warns of the names that do not exist.
func (l lookup) warnings(ctx context.Context, mentions []compiler.Mention, text string) (list []compiler.Warning) {
	if len(mentions) == 0 {
		return nil
	}
	mentions = mentions[:min(len(mentions), maxChecked)]
	ctx, cancel := context.WithTimeout(ctx, namesWait)
	defer cancel()
	missing, err := l.missing(ctx, mentions)
	if err != nil {
		return nil
	}
	for i := range missing {
		list = append(list, compiler.Unseen(&missing[i], text, l.suggestions(ctx, &missing[i])))
	}
	return list
}

// missing asks ClickHouse which names are nowhere in the project's data, and remembers the others.
func (l lookup) missing(ctx context.Context, mentions []compiler.Mention) (missing []compiler.Mention, err error) {
	events := slices.DeleteFunc(slices.Clone(mentions), func(m compiler.Mention) bool { return !m.IsEvent() })
	if len(events) > 0 {
		found, err := l.ask(ctx, compiler.Existence(events))
		if err != nil {
			return nil, err
		}
		for i := range events {
			if slices.Contains(found, events[i].Name) {
				l.exec.Names.note(l.project, &events[i])
			} else {
				missing = append(missing, events[i])
			}
		}
	}
	for i := range mentions {
		if mentions[i].IsEvent() {
			continue
		}
		found, err := l.ask(ctx, compiler.Existence(mentions[i:i+1]))
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			l.exec.Names.note(l.project, &mentions[i])
		} else {
			missing = append(missing, mentions[i])
		}
	}
	return missing, nil
}

// suggestions returns names that may have been meant instead of one that does not exist.
func (l lookup) suggestions(ctx context.Context, m *compiler.Mention) (names []string) {
	if !m.IsEvent() {
		for key := range l.env.Database.Properties {
			if key.Scope == m.Key.Scope && key.Group == m.Key.Group {
				names = append(names, key.Name)
			}
		}
		return names
	}
	all := l.exec.Names
	all.mu.Lock()
	known := all.of(l.project)
	names, fresh := known.events, time.Since(known.listed) < suggestionsAge
	all.mu.Unlock()
	if fresh {
		return names
	}
	listed, err := l.ask(ctx, taxonomy.Events())
	if err != nil {
		return names
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	known = all.of(l.project)
	known.events, known.listed = listed, time.Now()
	return listed
}

// ask runs a query of our own in the place, and returns the texts in the first column.
func (l lookup) ask(ctx context.Context, node *query.HogQL) ([]string, error) {
	compiled, err := compiler.Compile(node, l.env)
	if err != nil {
		return nil, err
	}
	rows := cache.NewBuilder(cache.Limits{MaxBytes: maxNameBytes})
	q := QueryOf(compiled, l.project, Comment(l.project, map[string]any{"names": true}))
	if _, err := l.exec.Shards.Of(l.project).Query(ctx, l.place, q, sink{rows: rows}); err != nil {
		return nil, fmt.Errorf("looking for names: %w", err)
	}
	var names []string
	for row := range rows.Result().Rows() {
		var cells []any
		if err := json.Unmarshal(row, &cells); err != nil || len(cells) == 0 {
			return nil, errors.Join(errors.New("BUG: a malformed row of names"), err)
		}
		names = append(names, fmt.Sprint(cells[0]))
	}
	return names, nil
}

// maxNameBytes is how many bytes of names are read at once at most.
const maxNameBytes = 8 << 20
