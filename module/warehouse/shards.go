package warehouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Shards are the parts of ClickHouse that hold the rows of projects. All rows of a project are on one shard, so each query runs there as if there
// were no others. The main shard always exists; the others have names.
type Shards struct {
	main   *Warehouse
	others map[string]*Warehouse // by name
	of     func(project int64) string

	nowhere *Warehouse // for projects on shards that the config does not name
}

// ShardsConfig describes the shards.
type ShardsConfig struct {
	Main   clickhouse.Config
	Others map[string]string // DSNs by name; all other settings are those of Main
	Shared Shared
	// Common is what these shards share with those of other configs.
	Common *Common
	// Of returns the name of a project's shard; empty for the main one.
	Of     func(project int64) string
	Logger *zap.Logger
}

// OpenShards opens all shards, as Open does.
func OpenShards(config ShardsConfig) (*Shards, error) {
	config.Main.Shards = 1 + len(config.Others)
	openOn := func(dsn string, logger *zap.Logger) (*Warehouse, error) {
		own := config.Main
		own.DSN = dsn
		return open(own, config.Shared, config.Common.on(dsn), logger)
	}
	main, err := openOn(config.Main.DSN, config.Logger)
	if err != nil {
		return nil, err
	}
	nowhere, err := clickhouse.Open(clickhouse.Config{
		DSN: "clickhouse://unnamed", Dial: func(context.Context, string) (net.Conn, error) { return nil, errUnnamed },
	}, zap.NewNop())
	if err != nil {
		return nil, errors.Join(err, main.Close())
	}
	s := &Shards{main: main, others: map[string]*Warehouse{}, of: config.Of, nowhere: With(nowhere, nil)}
	for name, dsn := range config.Others {
		if s.others[name], err = openOn(dsn, config.Logger.With(zap.String("shard", name))); err != nil {
			delete(s.others, name)
			return nil, errors.Join(fmt.Errorf("the shard %s: %w", name, err), s.Close())
		}
	}
	return s, nil
}

// Only returns Shards with a single one.
func Only(w *Warehouse) *Shards { return &Shards{main: w, of: func(int64) string { return "" }} }

// Close closes all shards.
func (s *Shards) Close() error {
	var errs []error
	for _, w := range s.All() {
		errs = append(errs, w.Close())
	}
	if s.nowhere != nil {
		errs = append(errs, s.nowhere.Close())
	}
	return errors.Join(errs...)
}

// Of returns the shard that holds the rows of a project. If the config does not name it, the result is one that never answers: any other shard would
// lack the project's rows, and take new ones in the wrong place.
func (s *Shards) Of(project int64) *Warehouse {
	name := s.of(project)
	if name == "" {
		return s.main
	}
	if w := s.others[name]; w != nil {
		return w
	}
	return s.nowhere
}

var errUnnamed = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("the config of this server does not name the shard of the project")}

// All lists the shards: the main one, and the others by name.
func (s *Shards) All() []*Warehouse {
	all := []*Warehouse{s.main}
	for _, name := range slices.Sorted(maps.Keys(s.others)) {
		all = append(all, s.others[name])
	}
	return all
}

// ByName returns the shards by name, which is empty for the main one.
func (s *Shards) ByName() map[string]*Warehouse {
	all := maps.Clone(s.others)
	if all == nil {
		all = map[string]*Warehouse{}
	}
	all[""] = s.main
	return all
}

// Main returns the shard of projects that are on no named shard.
func (s *Shards) Main() *Warehouse { return s.main }

// Several reports whether there is more than one shard.
func (s *Shards) Several() bool { return len(s.others) > 0 }

// Named returns a shard by its name, empty for the main one; nil if there is none with that name.
func (s *Shards) Named(name string) *Warehouse {
	if name == "" {
		return s.main
	}
	return s.others[name]
}

// Names lists the names of all shards except the main one.
func (s *Shards) Names() []string { return slices.Sorted(maps.Keys(s.others)) }

// Emptiest returns the name of the shard with the fewest projects; the main one if no other has fewer.
func (s *Shards) Emptiest(projects []*registry.Project) string {
	count := map[string]int{}
	for _, p := range projects {
		count[p.Shard]++
	}
	found := ""
	for _, name := range s.Names() {
		if count[name] < count[found] {
			found = name
		}
	}
	return found
}

// Alone reports whether only this server and those that share its registry write properties to any shard.
func (s *Shards) Alone() bool { return s.main.Alone() && !s.Several() }

// Reachable reports whether all shards answered when they were last asked.
func (s *Shards) Reachable() bool {
	return !slices.ContainsFunc(s.All(), func(w *Warehouse) bool { return !w.Reachable() })
}

// Hosts returns the state of each host of all shards.
func (s *Shards) Hosts() (hosts []clickhouse.HostState) {
	for _, w := range s.All() {
		hosts = append(hosts, w.Hosts()...)
	}
	return hosts
}

// Moved returns how many queries and statements went to another host of their shard because one could not be used.
func (s *Shards) Moved() (moved uint64) {
	for _, w := range s.All() {
		moved += w.Moved()
	}
	return moved
}

// Ping checks that shards answer, all at once. The error is nil if any of them answers: it can serve its projects.
func (s *Shards) Ping(ctx context.Context) error {
	all := s.All()
	if len(all) == 1 {
		return s.main.Ping(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan error, len(all))
	for _, w := range all {
		go func() { answers <- w.Ping(ctx) }()
	}
	var errs []error
	for range all {
		err := <-answers
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
