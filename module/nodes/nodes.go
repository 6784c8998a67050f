// Package nodes lets the servers of a deployment find one another in the registry that they share.
//
// Each server keeps a record of itself with a counter that it increments, and reads the records of the others. A server lives as long as its counter
// moves, by the reader's own clock, so the clocks of the servers need not agree.
//
// The cost: each of n servers writes its record and reads all n of them once per second, or every n tenths of a second if that is longer. So from 10
// servers on, all servers together cause at most 10 writes and 10 reads per second. A record takes less than 400 bytes.
package nodes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Board is where servers keep their records: a subset of registry.Sharer.
type Board interface {
	// Keep stores data under a name, replacing what was there; empty data removes it.
	Keep(ctx context.Context, name string, data []byte) error
	// KeptAll returns everything stored under names that begin with prefix.
	KeptAll(ctx context.Context, prefix string) (map[string][]byte, error)
}

// Fingerprint is the SHA-256 of a server's certificate.
type Fingerprint [sha256.Size]byte

// Node is a server of the deployment. It is immutable.
type Node struct {
	Name        string // of the process: 16 hexadecimal digits
	Address     string // host:port at which it answers the others; empty if it does not
	Fingerprint Fingerprint
	Version     string // of the program
	Form        int    // of the messages that it understands
	Source      string // what its results depend on: a server owns results only for servers of the same source
}

// record is a Node as stored.
type record struct {
	Address     string `json:"address,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Version     string `json:"version"`
	Form        int    `json:"form"`
	Source      string `json:"source,omitempty"`
	Beat        uint64 `json:"beat"`
	EveryMillis int64  `json:"every_ms"` // how long it takes at most until the counter moves
}

// prefix is the prefix of the names of records: registry.NodePrefix.
const prefix = "node-"

const (
	defaultEvery = time.Second
	// missed is how many times a counter may fail to move before its server counts as gone.
	missed = 3
	// removeAfter is how long a record is kept whose counter has stopped.
	removeAfter = 10 * time.Minute
	// back is by how much a server's counter must move before it owns results again after failing to answer: a value that it wrote before it died,
	// but that was not read yet, must not count. back doubles each time the server fails again, up to maxBack.
	back    = 3
	maxBack = 48
	// minReadInterval is the shortest time between two reads that callers ask for.
	minReadInterval = time.Second
	// maxRecords bounds how many records are read. No deployment is that large; any beyond it were not written by servers.
	maxRecords = 4096
	// boardTimeout is the longest that a read or write of records may take.
	boardTimeout = 5 * time.Second
)

// Config configures a Directory.
type Config struct {
	Board Board // comparable: equal boards are the same place
	Self  Node
	// How long it takes at most until the counter moves while there are few servers. Default: 1s.
	Every time.Duration
	// The server's clock. Default: time.Now.
	Now func() time.Time
	// Default: nothing is logged.
	Logger *zap.Logger
}

// Directory knows the servers of the deployment. It is safe for concurrent use.
type Directory struct {
	board Board
	self  Node
	every time.Duration
	now   func() time.Time
	log   *zap.Logger
	voice *voice

	view atomic.Pointer[view]

	wanted chan struct{} // makes the loop read the records now

	mu       sync.Mutex // guards the following fields; not held while the registry is asked
	seen     map[string]*seen
	lastRead time.Time
	pending  *pending  // the read that callers wait for; nil for none
	asked    time.Time // when callers last had the records read, on the clock of timers
	closed   bool

	beat   uint64 // only for the loop
	failed bool   // the last round failed
	stop   context.CancelFunc
	done   chan struct{}
}

// seen is what is known of another server's record.
type seen struct {
	node   Node
	beat   uint64
	every  time.Duration
	moved  time.Time // when beat was first seen
	living bool
	dead   bool   // its counter stopped for too long; until that is known, a newly found server may live
	silent uint64 // it owns nothing until its counter exceeds this; 0 if it may own results
	failed int    // counts consecutive requests that it did not answer
}

// canBeAsked reports whether a server answers others and understands this one's requests.
func (d *Directory) canBeAsked(n Node) bool { return n.Address != "" && n.Form == d.self.Form }

// pending is a read of the records that has not begun yet.
type pending struct {
	done chan struct{} // closed when it has ended
	err  error         // set by then
}

// view is the current set of servers. It is immutable.
type view struct {
	living   []Node // including this one, sorted by name
	owners   []Node // the living ones that own results
	byPrint  map[Fingerprint]Node
	byName   map[string]Node // all that have a record, except this one
	selfOwns bool
}

// voice is the writer of a server's record. While one config replaces another, a process has several Directories of the same server: only the newest writes.
type voice struct {
	of      voiceKey
	writing sync.Mutex   // held while the record is written or removed
	all     []*Directory // in the order in which they were opened; guarded by voices
}

type voiceKey struct {
	board Board
	name  string
}

// voices are those of this process.
var voices = struct {
	sync.Mutex
	all map[voiceKey]*voice
}{all: make(map[voiceKey]*voice)}

// join makes a Directory the newest of its server. It starts with what the previous one knows, because the registry may be unreachable now.
func (d *Directory) join() {
	voices.Lock()
	defer voices.Unlock()
	key := voiceKey{d.board, d.self.Name}
	v := voices.all[key]
	if v == nil {
		v = &voice{of: key}
		voices.all[key] = v
	}
	if len(v.all) > 0 {
		d.learn(v.all[len(v.all)-1])
	}
	v.all = append(v.all, d)
	d.voice = v
}

// learn copies what another Directory of the server knows.
func (d *Directory) learn(from *Directory) {
	from.mu.Lock()
	defer from.mu.Unlock()
	for name, s := range from.seen {
		known := *s
		d.seen[name] = &known
	}
	d.lastRead = from.lastRead
}

// leave removes the Directory from those of its server. The newest of the others writes from then on.
func (d *Directory) leave() {
	voices.Lock()
	defer voices.Unlock()
	v := d.voice
	if v.all = slices.DeleteFunc(v.all, func(one *Directory) bool { return one == d }); len(v.all) == 0 && voices.all[v.of] == v {
		delete(voices.all, v.of)
	}
}

// speak writes the server's record, or removes it if data is nil, provided that the Directory is the newest.
func (d *Directory) speak(ctx context.Context, data []byte) error {
	d.voice.writing.Lock() // so that an older Directory can't write after the newest
	defer d.voice.writing.Unlock()
	voices.Lock()
	all := d.voice.all
	newest := len(all) > 0 && all[len(all)-1] == d
	voices.Unlock()
	if !newest {
		return nil
	}
	return d.board.Keep(ctx, prefix+d.self.Name, data)
}

// Open announces a server and looks for others, until Close. If several share a name and a board, only the newest writes the record.
func Open(cfg Config) *Directory {
	d := &Directory{
		board: cfg.Board, self: cfg.Self, every: cmp.Or(cfg.Every, defaultEvery), now: cfg.Now, log: cmp.Or(cfg.Logger, zap.NewNop()), seen: make(map[string]*seen),
		wanted: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if d.now == nil {
		d.now = time.Now
	}
	d.join()
	d.publish()
	var ctx context.Context
	ctx, d.stop = context.WithCancel(context.Background())
	go d.run(ctx)
	return d
}

// Close removes the server's record, unless a newer Directory of the server writes it.
func (d *Directory) Close() error {
	d.stop()
	<-d.done
	ctx, cancel := context.WithTimeout(context.Background(), boardTimeout)
	defer cancel()
	defer d.leave()
	return d.speak(ctx, nil)
}

// Self returns this server.
func (d *Directory) Self() Node { return d.self }

// Nodes returns how many servers live, including this one.
func (d *Directory) Nodes() int { return len(d.view.Load().living) }

// Owner returns the server that owns a result: all servers of one source that know of the same servers get the same one. It returns false if this
// server owns it, or there is no other.
func (d *Directory) Owner(key [sha256.Size]byte) (Node, bool) {
	v := d.view.Load()
	if len(v.owners) == 0 || len(v.owners) == 1 && v.selfOwns {
		return Node{}, false
	}
	var best Node
	var most uint64
	for _, n := range v.owners {
		sum := sha256.Sum256(append([]byte(n.Name), key[:]...))
		if weight := binary.BigEndian.Uint64(sum[:]); best.Name == "" || weight > most {
			best, most = n, weight
		}
	}
	return best, best.Name != d.self.Name
}

// The errors of Named.
var (
	// ErrGone reports that a server has no record: it has ended, or has not written its counter for a long time.
	ErrGone = errors.New("the server has no record")
	// ErrNotAsked reports that a server has a record but does not answer this one.
	ErrNotAsked = errors.New("the server does not accept requests from this one")
)

// Named returns another server by its name, dead or alive. If the name is unknown, the records are read again; the error is ErrGone only if that
// succeeded. Any other error says nothing about the server.
func (d *Directory) Named(ctx context.Context, name string) (Node, error) {
	n, ok := d.view.Load().byName[name]
	if !ok {
		if err := d.readAgain(ctx); err != nil {
			return Node{}, fmt.Errorf("looking for a server: %w", err)
		}
		if n, ok = d.view.Load().byName[name]; !ok {
			return Node{}, ErrGone
		}
	}
	if !d.canBeAsked(n) {
		return Node{}, ErrNotAsked
	}
	return n, nil
}

// Ended reports whether a server that does not answer at its address has ended: its record is gone by now, or unchanged with a counter that has
// stopped. It returns an error if the records can't be read.
func (d *Directory) Ended(ctx context.Context, n Node) (bool, error) {
	if err := d.readAgain(ctx); err != nil {
		return false, fmt.Errorf("looking for a server: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.seen[n.Name]
	return s == nil || s.dead && s.node == n, nil
}

// Has reports whether another server has a record, as far as is known.
func (d *Directory) Has(name string) bool {
	_, ok := d.view.Load().byName[name]
	return ok
}

// Others returns the other servers that can be asked: those that live or may live, and those whose counter has stopped for too long.
func (d *Directory) Others() (living, dead []Node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.seen {
		switch {
		case !d.canBeAsked(s.node):
		case s.dead:
			dead = append(dead, s.node)
		default:
			living = append(living, s.node)
		}
	}
	return living, dead
}

// Known returns the server with a certificate. If none is known, the records are read again, at most once per second for all callers.
func (d *Directory) Known(ctx context.Context, print Fingerprint) (Node, bool) {
	n, ok := d.view.Load().byPrint[print]
	if ok {
		return n, true
	}
	if p, wait := d.request(); wait <= 0 {
		_ = await(ctx, p) // on an error, what is known stays
	}
	n, ok = d.view.Load().byPrint[print]
	return n, ok
}

// readAgain waits for a read of the records that begins after the call.
func (d *Directory) readAgain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, boardTimeout)
	defer cancel()
	p, _ := d.request()
	return await(ctx, p)
}

func await(ctx context.Context, p *pending) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// request returns the next read of the records, and how long it takes at most until it begins. A requested read begins at least minReadInterval after the
// previous one, so that requests cost little.
func (d *Directory) request() (p *pending, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.asked.IsZero() {
		wait = minReadInterval - time.Since(d.asked)
	}
	if d.pending != nil {
		return d.pending, wait
	}
	p = &pending{done: make(chan struct{})}
	if d.closed {
		p.err = errClosed
		close(p.done)
		return p, wait
	}
	d.pending = p
	time.AfterFunc(wait, func() {
		select {
		case d.wanted <- struct{}{}:
		default:
		}
	})
	return p, wait
}

var errClosed = errors.New("the directory of servers is closed")

// take returns the read that callers wait for, which now begins; nil for none.
func (d *Directory) take() *pending {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.pending
	d.pending = nil
	return p
}

// finish reports the outcome to those who wait for the read.
func (p *pending) finish(err error) {
	if p != nil {
		p.err = err
		close(p.done)
	}
}

// Silent records that a server did not answer. The server owns nothing here until its counter has moved far enough: twice as far each time that it
// fails again. It reports whether the server answered until now.
func (d *Directory) Silent(name string) (changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.seen[name]
	if s == nil || s.silent != 0 {
		return false
	}
	s.silent = s.beat + min(uint64(back)<<min(s.failed, 8), maxBack) - 1
	s.failed++
	d.publish()
	return s.failed == 1
}

// Answered records that a server answered. It reports whether it did not before.
func (d *Directory) Answered(name string) (changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.seen[name]
	if s == nil || s.failed == 0 {
		return false
	}
	s.failed, s.silent = 0, 0
	d.publish()
	return true
}

// run moves the counter and reads those of the others.
func (d *Directory) run(ctx context.Context) {
	defer close(d.done)
	defer d.refuse()
	for {
		d.round(ctx)
		wait := time.NewTimer(d.interval())
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				wait.Stop()
				return
			case <-wait.C:
				waiting = false
			case <-d.wanted:
				d.readWanted(ctx)
			}
		}
	}
}

// readWanted reads the records if anyone waits for that.
func (d *Directory) readWanted(ctx context.Context) {
	p := d.take()
	if p == nil { // a round has read them meanwhile
		return
	}
	d.mu.Lock()
	d.asked = time.Now()
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, boardTimeout)
	defer cancel()
	p.finish(d.read(ctx))
}

// refuse ends all waits.
func (d *Directory) refuse() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.take().finish(errClosed)
}

// interval returns how long it takes until the counter moves.
func (d *Directory) interval() time.Duration {
	return max(d.every, time.Duration(d.Nodes())*d.every/10)
}

func (d *Directory) round(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, boardTimeout)
	defer cancel()
	d.beat++
	data, err := json.Marshal(record{
		Address: d.self.Address, Fingerprint: hex.EncodeToString(d.self.Fingerprint[:]), Version: d.self.Version, Form: d.self.Form, Source: d.self.Source,
		Beat: d.beat, EveryMillis: d.interval().Milliseconds(),
	})
	if err == nil {
		err = d.speak(ctx, data)
	}
	waiting := d.take()
	unread := d.read(ctx)
	waiting.finish(unread)
	err = errors.Join(err, unread)
	for _, name := range d.gone() {
		err = errors.Join(err, d.board.Keep(ctx, prefix+name, nil))
	}
	if failed := err != nil; failed != d.failed && context.Cause(ctx) != context.Canceled { //nolint:errorlint // the cause of this context itself
		d.failed = failed
		if failed {
			d.log.Warn("cannot read the list of servers from the registry; keeping the last known one", zap.Error(err))
		} else {
			d.log.Info("the list of servers can be read from the registry again")
		}
	}
}

// gone returns the servers whose records are to be removed. Only one server removes records: the first living one by name.
func (d *Directory) gone() (names []string) {
	if living := d.view.Load().living; living[0].Name != d.self.Name {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for name, s := range d.seen {
		if now.Sub(s.moved) > removeAfter {
			names = append(names, name)
		}
	}
	return names
}

// read reads the records. Only the loop calls it.
func (d *Directory) read(ctx context.Context) error {
	kept, err := d.board.KeptAll(ctx, prefix)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	if gap := now.Sub(d.lastRead); !d.lastRead.IsZero() && gap > 2*d.interval() { // no counter could be seen to move meanwhile
		for _, s := range d.seen {
			s.moved = s.moved.Add(gap)
		}
	}
	d.lastRead = now
	names := slices.Sorted(maps.Keys(kept))
	if len(names) > maxRecords {
		names = names[:maxRecords]
	}
	found := make(map[string]*seen, len(names))
	for _, full := range names {
		name, ok := strings.CutPrefix(full, prefix)
		if !ok || name == d.self.Name {
			continue
		}
		if s, ok := d.see(name, kept[full], now); ok {
			found[name] = s
		}
	}
	d.seen = found
	d.publish()
	return nil
}

// see examines a record. ok is false if no server wrote it. The caller holds mu.
func (d *Directory) see(name string, data []byte, now time.Time) (*seen, bool) {
	r, print, ok := parse(name, data)
	if !ok {
		return nil, false
	}
	n := Node{Name: name, Address: r.Address, Fingerprint: print, Version: r.Version, Form: r.Form, Source: r.Source}
	s := d.seen[name]
	if s == nil || s.node != n { // it lives once its counter has moved
		return &seen{node: n, beat: r.Beat, moved: now}, true
	}
	s.every = time.Duration(r.EveryMillis) * time.Millisecond
	switch {
	case r.Beat != s.beat:
		if r.Beat > s.silent || r.Beat < s.beat { // after a reload it counts afresh
			s.silent = 0
		}
		s.beat, s.moved, s.living, s.dead = r.Beat, now, true, false
	case now.Sub(s.moved) > missed*s.every+d.every:
		s.living, s.dead = false, true
	}
	return s, true
}

const (
	nameLength      = 16
	maxRecordBytes  = 1 << 10 // bytes
	maxAddressBytes = 256     // bytes
	// maxInterval bounds what a record may say about when its counter moves.
	maxInterval = 10 * time.Minute
)

// parse reads a record. ok is false if no server wrote it.
func parse(name string, data []byte) (r record, print Fingerprint, ok bool) {
	if _, err := hex.DecodeString(name); err != nil || len(name) != nameLength || len(data) > maxRecordBytes || json.Unmarshal(data, &r) != nil {
		return r, print, false
	}
	raw, err := hex.DecodeString(r.Fingerprint)
	if err != nil || len(raw) != len(print) || len(r.Address) > maxAddressBytes {
		return r, print, false
	}
	if every := time.Duration(r.EveryMillis); every <= 0 || every > maxInterval/time.Millisecond {
		return r, print, false
	}
	copy(print[:], raw)
	return r, print, true
}

// publish updates the view from what was seen. The caller holds mu, or is the only user.
func (d *Directory) publish() {
	v := &view{living: []Node{d.self}, byPrint: make(map[Fingerprint]Node), byName: make(map[string]Node), selfOwns: d.self.Address != ""}
	if v.selfOwns {
		v.owners = append(v.owners, d.self)
	}
	for _, s := range d.seen {
		v.byPrint[s.node.Fingerprint] = s.node
		v.byName[s.node.Name] = s.node
		if !s.living {
			continue
		}
		v.living = append(v.living, s.node)
		if d.canBeAsked(s.node) && s.silent == 0 && s.node.Source == d.self.Source {
			v.owners = append(v.owners, s.node)
		}
	}
	slices.SortFunc(v.living, byName)
	slices.SortFunc(v.owners, byName)
	d.view.Store(v)
}

func byName(a, b Node) int { return cmp.Compare(a.Name, b.Name) }
