// Package nodes lets the servers of a deployment find one another in the registry that they share.
//
// Each server keeps a record of itself, with a number that it counts up, and reads those of the others. A server lives as long as its number moves by
// the reader's own clock, so it makes no difference what time the others think it is.
//
// What that costs: with n servers each writes its record and reads all n of them once in a second, or in n tenths of a second if that is longer. So all
// servers together cause at most 10 writes and 10 reads in a second from 10 servers on, and a record takes less than 400 bytes.
package nodes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Board is where servers keep their records: a part of what a registry.Sharer can do.
type Board interface {
	// Keep keeps data under a name, in place of what was there; none keeps nothing.
	Keep(ctx context.Context, name string, data []byte) error
	// KeptAll returns what is kept under all names that begin with prefix.
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
	Source      string // what its results depend on: servers own results for those of the same source alone
}

// record is a Node as it is kept.
type record struct {
	Address     string `json:"address,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Version     string `json:"version"`
	Form        int    `json:"form"`
	Source      string `json:"source,omitempty"`
	Beat        uint64 `json:"beat"`
	EveryMillis int64  `json:"every_ms"` // how long it takes at most until the number moves
}

// prefix begins the names of records: registry.NodePrefix.
const prefix = "node-"

const (
	defaultEvery = time.Second
	// missed is how many times a number may fail to move before its server counts as gone.
	missed = 3
	// removeAfter is how long a record is kept whose number no longer moves.
	removeAfter = 10 * time.Minute
	// back is by how much the number of a server must move before it is asked again after it has failed to answer: one that it wrote before it died, but
	// that was not read yet, must not count.
	back = 3
	// mostRecords bounds how many records are looked at. No deployment is as large; what goes beyond it was not written by servers.
	mostRecords = 4096
	// boardTimeout is the longest that a read or a write of records may take.
	boardTimeout = 5 * time.Second
)

// Config says what a Directory is of.
type Config struct {
	Board Board // comparable: two that are equal are the same place
	Self  Node
	// How long it takes at most until the number moves while there are few servers. Default: 1s.
	Every time.Duration
	// Default: nothing is logged.
	Logger *zap.Logger
}

// Directory knows the servers of the deployment. It is safe for concurrent use.
type Directory struct {
	board Board
	self  Node
	every time.Duration
	log   *zap.Logger
	voice *voice

	view atomic.Pointer[view]

	reading sync.Mutex // held while records are read
	asked   time.Time  // when Known last had them read; guarded by reading

	mu       sync.Mutex // guards what follows; not held while the registry is asked
	seen     map[string]*seen
	lastRead time.Time

	beat   uint64 // of the loop alone
	failed bool   // the last round failed
	stop   context.CancelFunc
	done   chan struct{}
}

// seen is what is known of another server's record.
type seen struct {
	node   Node
	beat   uint64
	every  time.Duration
	moved  time.Time // when the number was first seen to be what it is
	living bool
	dead   bool   // its number stood still for too long; until that is known, one that is new here may live
	silent uint64 // it is not asked before its number is greater than this; 0 if it answers
}

// view is the servers as they are now. It is immutable.
type view struct {
	living   []Node // with this one, by name
	owners   []Node // those of living that own results
	byPrint  map[Fingerprint]Node
	byName   map[string]Node // those that may live and can be asked, without this one
	selfOwns bool
}

// voice is the record of a server. A process has several Directories of one server while a config takes over from another one: the newest speaks for it.
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

// join makes a Directory the newest of its server.
func (d *Directory) join() {
	voices.Lock()
	defer voices.Unlock()
	key := voiceKey{d.board, d.self.Name}
	v := voices.all[key]
	if v == nil {
		v = &voice{of: key}
		voices.all[key] = v
	}
	v.all = append(v.all, d)
	d.voice = v
}

// leave takes the Directory away from those of its server. The newest that is left speaks from then on.
func (d *Directory) leave() {
	voices.Lock()
	defer voices.Unlock()
	v := d.voice
	if v.all = slices.DeleteFunc(v.all, func(one *Directory) bool { return one == d }); len(v.all) == 0 && voices.all[v.of] == v {
		delete(voices.all, v.of)
	}
}

// speak writes the record of the server, or removes it with no data, if the Directory is the newest one.
func (d *Directory) speak(ctx context.Context, data []byte) error {
	d.voice.writing.Lock() // so that what an older one writes is not later than what the newest does
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

// Open announces a server and looks for others, until Close. Of several with one name on one board the newest alone writes the record.
func Open(cfg Config) *Directory {
	d := &Directory{
		board: cfg.Board, self: cfg.Self, every: cmp.Or(cfg.Every, defaultEvery), log: cmp.Or(cfg.Logger, zap.NewNop()), seen: make(map[string]*seen),
		done: make(chan struct{}),
	}
	d.publish()
	d.join()
	var ctx context.Context
	ctx, d.stop = context.WithCancel(context.Background())
	go d.run(ctx)
	return d
}

// Close takes the server's record away, unless a newer Directory of the server writes it.
func (d *Directory) Close() error {
	d.stop()
	<-d.done
	ctx, cancel := context.WithTimeout(context.Background(), boardTimeout)
	defer cancel()
	defer d.leave()
	return d.speak(ctx, nil)
}

// Self is this server.
func (d *Directory) Self() Node { return d.self }

// Nodes is how many servers live, with this one.
func (d *Directory) Nodes() int { return len(d.view.Load().living) }

// Living are the servers that live, with this one, by name.
func (d *Directory) Living() []Node { return slices.Clone(d.view.Load().living) }

// Owner is the server that owns a result: the same on all servers of one source that know of the same ones. It is false if this one does, or would be alone.
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

// Named is another server that can be asked, by its name. It is also found when it did not answer before; it is not once its record is gone, or its number
// has stood still for too long.
func (d *Directory) Named(name string) (Node, bool) {
	n, ok := d.view.Load().byName[name]
	return n, ok
}

// Known is the server with a certificate. The records are read again if there is none, at most once in a second, whoever asks.
func (d *Directory) Known(ctx context.Context, print Fingerprint) (Node, bool) {
	if n, ok := d.view.Load().byPrint[print]; ok {
		return n, true
	}
	d.readAgain(ctx)
	n, ok := d.view.Load().byPrint[print]
	return n, ok
}

// readAgain reads the records now, if nobody had them read within a second.
func (d *Directory) readAgain(ctx context.Context) {
	d.reading.Lock()
	defer d.reading.Unlock()
	if now := time.Now(); d.asked.IsZero() || now.Sub(d.asked) >= time.Second {
		d.asked = now
		_ = d.read(ctx) // what is known stays
	}
}

// Silent notes that a server did not answer. It owns nothing here until its number moves.
func (d *Directory) Silent(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.seen[name]; s != nil && s.silent == 0 {
		s.silent = s.beat + back - 1
		d.publish()
	}
}

// run moves the number and reads those of others.
func (d *Directory) run(ctx context.Context) {
	defer close(d.done)
	for {
		d.round(ctx)
		wait := time.NewTimer(d.interval())
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

// interval is how long it takes until the number moves.
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
	d.reading.Lock()
	err = errors.Join(err, d.read(ctx))
	d.reading.Unlock()
	for _, name := range d.gone() {
		err = errors.Join(err, d.board.Keep(ctx, prefix+name, nil))
	}
	if failed := err != nil; failed != d.failed && context.Cause(ctx) != context.Canceled { //nolint:errorlint // the cause of this very context
		d.failed = failed
		if failed {
			d.log.Warn("the registry does not say which servers there are; those that were known stay so", zap.Error(err))
		} else {
			d.log.Info("the registry says again which servers there are")
		}
	}
}

// gone are the servers whose record is to be removed. One server does it: the first by name of those that live.
func (d *Directory) gone() (names []string) {
	if living := d.view.Load().living; living[0].Name != d.self.Name {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for name, s := range d.seen {
		if now.Sub(s.moved) > removeAfter {
			names = append(names, name)
		}
	}
	return names
}

// read reads the records. The caller holds reading.
func (d *Directory) read(ctx context.Context) error {
	kept, err := d.board.KeptAll(ctx, prefix)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if gap := now.Sub(d.lastRead); !d.lastRead.IsZero() && gap > 2*d.interval() { // no number could be seen to move meanwhile
		for _, s := range d.seen {
			s.moved = s.moved.Add(gap)
		}
	}
	d.lastRead = now
	names := slices.Sorted(maps.Keys(kept))
	if len(names) > mostRecords {
		names = names[:mostRecords]
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

// see takes a look at a record. It is false for what no server writes. The caller holds mu.
func (d *Directory) see(name string, data []byte, now time.Time) (*seen, bool) {
	r, print, ok := parse(name, data)
	if !ok {
		return nil, false
	}
	n := Node{Name: name, Address: r.Address, Fingerprint: print, Version: r.Version, Form: r.Form, Source: r.Source}
	s := d.seen[name]
	if s == nil || s.node != n { // it lives once its number has moved
		return &seen{node: n, beat: r.Beat, moved: now}, true
	}
	s.every = time.Duration(r.EveryMillis) * time.Millisecond
	switch {
	case r.Beat != s.beat:
		s.beat, s.moved, s.living, s.dead = r.Beat, now, true, false
		if r.Beat > s.silent {
			s.silent = 0
		}
	case now.Sub(s.moved) > missed*s.every+d.every:
		s.living, s.dead = false, true
	}
	return s, true
}

const (
	nameLength  = 16
	mostRecord  = 1 << 10 // bytes
	mostAddress = 256     // bytes
	// longestEvery bounds what a record says about when its number moves.
	longestEvery = 10 * time.Minute
)

// parse reads a record. It is false for what no server writes.
func parse(name string, data []byte) (r record, print Fingerprint, ok bool) {
	if _, err := hex.DecodeString(name); err != nil || len(name) != nameLength || len(data) > mostRecord || json.Unmarshal(data, &r) != nil {
		return r, print, false
	}
	raw, err := hex.DecodeString(r.Fingerprint)
	if err != nil || len(raw) != len(print) || len(r.Address) > mostAddress {
		return r, print, false
	}
	if every := time.Duration(r.EveryMillis); every <= 0 || every > longestEvery/time.Millisecond {
		return r, print, false
	}
	copy(print[:], raw)
	return r, print, true
}

// publish shows what was seen. The caller holds mu, or is alone.
func (d *Directory) publish() {
	v := &view{living: []Node{d.self}, byPrint: make(map[Fingerprint]Node), byName: make(map[string]Node), selfOwns: d.self.Address != ""}
	if v.selfOwns {
		v.owners = append(v.owners, d.self)
	}
	for _, s := range d.seen {
		v.byPrint[s.node.Fingerprint] = s.node
		asked := s.node.Address != "" && s.node.Form == d.self.Form
		if asked && !s.dead {
			v.byName[s.node.Name] = s.node
		}
		if !s.living {
			continue
		}
		v.living = append(v.living, s.node)
		if asked && s.silent == 0 && s.node.Source == d.self.Source {
			v.owners = append(v.owners, s.node)
		}
	}
	slices.SortFunc(v.living, byName)
	slices.SortFunc(v.owners, byName)
	d.view.Store(v)
}

func byName(a, b Node) int { return cmp.Compare(a.Name, b.Name) }
