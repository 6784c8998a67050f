package warehouse

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// prober finds out which data projects have in a ClickHouse that others write to. It lists the parts of the tables, whose rows never change under
// their names, and for each new part reads a digest of what it has of the project. Digests add up, so a merge does not change the sum.
type prober struct {
	client proberClient
	budget time.Duration // after which a probe begins no further query

	mu       sync.Mutex
	host     clickhouse.Host  // the following fields are about this host
	tables   map[string]table // those that can be probed
	until    time.Time        // until when tables is valid
	projects map[int64]*probed
	held     int // bytes, for all projects
}

// table is a table that can be probed.
type table struct {
	definition string // from clickhouse.Client.Probeable
	columns    []string
}

// proberClient is a clickhouse.Client.
type proberClient interface {
	Front() clickhouse.Host
	Probeable(ctx context.Context, on clickhouse.Host) (map[string]string, error)
	PhysicalColumns(ctx context.Context) ([]physical.Column, error)
	Parts(ctx context.Context, on clickhouse.Host, tables []string) ([]clickhouse.Part, error)
	Digests(ctx context.Context, on clickhouse.Host, project int64, table string, columns, parts []string, yields bool) ([]clickhouse.Digest, error)
}

func newProber(client proberClient) *prober {
	return &prober{client: client, budget: probeBudget, projects: map[int64]*probed{}}
}

// probed is what is known of a project on a host.
type probed struct {
	host  clickhouse.Host
	turn  chan struct{}       // has an element while somebody probes, who may use parts, count and quiet
	parts map[partID][]digest // by part, what it had of the project at the last probe
	count int                 // number of digests
	quiet time.Time           // not probed until then: it takes too long
	used  time.Time           // guarded by prober.mu
	held  int                 // bytes at the last probe; guarded by prober.mu
}

type partID struct{ table, name, id string }

// digest is what a part has of a project on a day, or in total.
type digest struct {
	day       int64
	rows, sum uint64
}

const (
	// probeableTTL is how long the list of probeable tables is valid.
	probeableTTL = 5 * time.Minute
	// quietFor is how long a project is not probed after its probe took too long.
	quietFor = 10 * time.Minute
	// unprobeableTTL is how long no project is probed after ClickHouse failed to say which tables can be.
	unprobeableTTL = time.Minute
	// maxHeld is how many bytes are kept for all projects. The constants below are about the most that a project, a part and a digest take.
	maxHeld                              = 64 << 20
	projectBytes, partBytes, digestBytes = 1 << 10, 256, 24
	// probeTries is how often to look again when parts were merged meanwhile.
	probeTries = 3
	// digestAtOnce is how many parts one query reads, and rowsAtOnce how many rows they may have in total, unless a single part has more.
	digestAtOnce, rowsAtOnce = 1000, 5_000_000
	// probeBudget is the budget of a probe. What was read by then is kept, and the next probe continues.
	probeBudget = time.Second
)

// state is a project's data in tables of a host, as digests. It is immutable.
type state struct {
	host   clickhouse.Host
	tables map[string]*tableState
}

// tableState is the state of one table.
type tableState struct {
	definition string
	days       []digest // sorted
}

// probe looks at what a project has in tables; nil if that can't be determined.
func (p *prober) probe(ctx context.Context, at *admission.Place, project int64, tables []string) (*state, error) {
	if err := check(at, project); err != nil {
		return nil, err
	}
	host := p.client.Front()
	there, err := p.probeable(ctx, host)
	if err != nil || len(there) == 0 {
		return nil, ignoreUnprobeable(ctx, err)
	}
	known := p.of(project, host)
	select {
	case known.turn <- struct{}{}:
		defer func() {
			p.hold(project, known)
			<-known.turn
		}()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if time.Now().Before(known.quiet) {
		return nil, nil // nothing is known, and that is no error
	}
	parts, ok, err := p.digested(ctx, at, project, known, tables, there)
	if err != nil && ignoreUnprobeable(ctx, err) == nil {
		known.quiet, err = time.Now().Add(quietFor), nil
	}
	if err != nil || !ok {
		return nil, err
	}
	return known.state(parts, tables, there), nil
}

// ignoreUnprobeable ignores the errors of a ClickHouse that answers but can't be probed: the query itself may still run.
func ignoreUnprobeable(ctx context.Context, err error) error {
	if failed, ok := errors.AsType[*clickhouse.Error](err); ok && failed.Kind != clickhouse.Unavailable && ctx.Err() == nil {
		return nil
	}
	return err
}

// probeable returns the tables of a host that can be probed, at most probeableTTL old. It forgets everything about other hosts.
func (p *prober) probeable(ctx context.Context, host clickhouse.Host) (map[string]table, error) {
	p.mu.Lock()
	if p.host != host {
		p.host, p.until, p.held = host, time.Time{}, 0
		clear(p.projects)
	}
	tables, fresh := p.tables, time.Now().Before(p.until)
	p.mu.Unlock()
	if fresh {
		return tables, nil
	}
	definitions, err := p.client.Probeable(ctx, host)
	var list []physical.Column
	if err == nil {
		list, err = p.client.PhysicalColumns(ctx)
	}
	if err != nil {
		if ignoreUnprobeable(ctx, err) == nil {
			p.note(host, nil, unprobeableTTL)
		}
		return nil, err
	}
	tables = map[string]table{}
	for name, definition := range definitions {
		tables[name] = table{definition: definition}
	}
	for _, c := range list {
		if of, ok := tables[c.Table]; ok {
			of.columns = append(of.columns, c.Name)
			tables[c.Table] = of
		}
	}
	p.note(host, tables, probeableTTL)
	return tables, nil
}

// note records which tables of a host can be probed, unless another host is used by now.
func (p *prober) note(host clickhouse.Host, tables map[string]table, lasts time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.host == host {
		p.tables, p.until = tables, time.Now().Add(lasts)
	}
}

// of returns what is known of a project on a host.
func (p *prober) of(project int64, host clickhouse.Host) *probed {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.projects[project]
	if known == nil || known.host != host {
		known = &probed{host: host, turn: make(chan struct{}, 1), parts: map[partID][]digest{}}
		if p.host == host {
			p.projects[project] = known
		}
	}
	known.used = time.Now()
	return known
}

// hold updates the memory used for a project that was probed. If all projects take too much, it forgets those not used for longest.
func (p *prober) hold(project int64, known *probed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.projects[project] != known { // forgotten in the meantime
		return
	}
	now := known.bytes()
	p.held, known.held = p.held+now-known.held, now
	for p.held > maxHeld && len(p.projects) > 1 {
		oldest, found := int64(0), false
		for other, of := range p.projects {
			if other != project && (!found || of.used.Before(p.projects[oldest].used)) {
				oldest, found = other, true
			}
		}
		p.drop(oldest)
	}
}

// bytes returns about how much memory is used. The caller has the turn.
func (known *probed) bytes() int {
	return projectBytes + len(known.parts)*partBytes + known.count*digestBytes
}

// drop forgets a project. The caller holds mu.
func (p *prober) drop(project int64) {
	if known := p.projects[project]; known != nil {
		p.held -= known.held
		delete(p.projects, project)
	}
}

// forget drops what is known of a project.
func (p *prober) forget(project int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(project)
}

// digested lists the parts of tables, and reads the digests of the unknown ones. ok is false if parts come and go too fast, or are too many to be
// read in one probe.
func (p *prober) digested(
	ctx context.Context, at *admission.Place, project int64, known *probed, tables []string, there map[string]table,
) (parts []clickhouse.Part, ok bool, err error) {
	parts, err = p.client.Parts(ctx, known.host, tables)
	for range probeTries {
		if err != nil {
			return nil, false, err
		}
		known.forget(parts, tables)
		fresh := known.unknown(parts)
		if len(fresh) == 0 {
			return parts, true, nil
		}
		whole, err := p.read(ctx, at, project, known, fresh, there)
		if err != nil {
			return nil, false, err
		}
		if known.bytes() > maxHeld {
			known.parts, known.count, known.quiet = map[partID][]digest{}, 0, time.Now().Add(quietFor)
			return nil, false, nil
		}
		now, err := p.client.Parts(ctx, known.host, tables)
		if err != nil {
			return nil, false, err
		}
		if known.keep(fresh, idsOf(now)) && whole {
			return parts, true, nil
		}
		if !whole {
			return nil, false, nil
		}
		parts = now
	}
	return nil, false, nil
}

func idOf(p *clickhouse.Part) partID { return partID{p.Table, p.Name, p.ID} }

func idsOf(parts []clickhouse.Part) map[partID]bool {
	ids := make(map[partID]bool, len(parts))
	for n := range parts {
		ids[idOf(&parts[n])] = true
	}
	return ids
}

// forget drops the digests of parts that no longer exist.
func (known *probed) forget(parts []clickhouse.Part, tables []string) {
	there := idsOf(parts)
	for id, digests := range known.parts {
		if slices.Contains(tables, id.table) && !there[id] {
			known.count -= len(digests)
			delete(known.parts, id)
		}
	}
}

// unknown returns the parts without a digest.
func (known *probed) unknown(parts []clickhouse.Part) (fresh []clickhouse.Part) {
	for n := range parts {
		if _, has := known.parts[idOf(&parts[n])]; !has {
			fresh = append(fresh, parts[n])
		}
	}
	return fresh
}

// keep drops the new digests of parts that were merged meanwhile, which may be incomplete. It reports whether it kept all.
func (known *probed) keep(read []clickhouse.Part, there map[partID]bool) (all bool) {
	all = true
	for n := range read {
		if id := idOf(&read[n]); !there[id] {
			known.count -= len(known.parts[id])
			delete(known.parts, id)
			all = false
		}
	}
	return all
}

// read reads the digests of parts. whole is false if it read only some of them, because all would take too long.
func (p *prober) read(
	ctx context.Context, at *admission.Place, project int64, known *probed, fresh []clickhouse.Part, there map[string]table,
) (whole bool, err error) {
	began := time.Now()
	for first := true; len(fresh) > 0; first = false {
		if !first && time.Since(began) > p.budget {
			return false, nil
		}
		n := batchLen(fresh)
		name, ids, names := fresh[0].Table, make(map[string]partID, n), make([]string, n)
		for i := range n {
			names[i], ids[fresh[i].Name] = fresh[i].Name, idOf(&fresh[i])
		}
		found, err := p.client.Digests(ctx, known.host, project, name, there[name].columns, names, at.Yields())
		if err != nil {
			return false, err
		}
		for _, id := range ids { // including those that have nothing of the project
			known.parts[id] = nil
		}
		for _, d := range found {
			known.parts[ids[d.Part]] = append(known.parts[ids[d.Part]], digest{d.Day, d.Rows, d.Sum})
		}
		known.count += len(found)
		if fresh = fresh[n:]; known.bytes() > maxHeld {
			return false, nil
		}
	}
	return true, nil
}

// batchLen returns how many parts one query reads: the first ones, of one table.
func batchLen(parts []clickhouse.Part) (n int) {
	rows := int64(0)
	for n < min(len(parts), digestAtOnce) && parts[n].Table == parts[0].Table {
		if rows += parts[n].Rows; rows > rowsAtOnce && n > 0 {
			break
		}
		n++
	}
	return n
}

// state adds up the digests of parts. A mutation rewrites rows part by part, and may leave their keys unchanged. So that the sums show its progress,
// each includes the rows of the part times a hash of the part's last mutation.
func (known *probed) state(parts []clickhouse.Part, tables []string, there map[string]table) *state {
	out := &state{known.host, map[string]*tableState{}}
	for _, name := range tables {
		out.tables[name] = &tableState{definition: there[name].definition}
	}
	days := map[string]map[int64]digest{}
	for n := range parts {
		one := &parts[n]
		rewritten := uint64(0)
		if one.Mutation > 0 {
			rewritten = number(binary.LittleEndian.AppendUint64(nil, uint64(one.Mutation)))
		}
		if days[one.Table] == nil {
			days[one.Table] = map[int64]digest{}
		}
		for _, d := range known.parts[idOf(one)] {
			sum := days[one.Table][d.day]
			days[one.Table][d.day] = digest{d.day, sum.rows + d.rows, sum.sum + d.sum + d.rows*rewritten}
		}
	}
	for name, of := range out.tables {
		for _, d := range days[name] {
			of.days = append(of.days, d)
		}
		slices.SortFunc(of.days, func(a, b digest) int { return int(a.day - b.day) })
	}
	return out
}

// appendTo appends what a table holds, for events only those in a span; ok is false if the table was not probed.
func (s *state) appendTo(dst []byte, table string, asked span) ([]byte, bool) {
	of := s.tables[table]
	if of == nil {
		return dst, false
	}
	dst = append(append(dst, table...), of.definition...)
	for _, d := range of.days {
		if table == physical.Events && !asked.overlaps(span{d.day * hoursOfDay, (d.day + 1) * hoursOfDay}) {
			continue
		}
		dst = binary.LittleEndian.AppendUint64(dst, uint64(d.day)) //nolint:gosec // any number will do
		dst = binary.LittleEndian.AppendUint64(dst, d.rows)
		dst = binary.LittleEndian.AppendUint64(dst, d.sum)
	}
	return dst, true
}

// number returns a digest of a text as a number.
func number(text []byte) uint64 {
	sum := sha256.Sum256(text)
	return binary.LittleEndian.Uint64(sum[:])
}
