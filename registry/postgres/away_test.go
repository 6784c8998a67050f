package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/postgres"
)

// idsIn returns the ids of all records.
func idsIn(t *testing.T, s registry.Store) map[string]bool {
	t.Helper()
	changes, err := s.Load(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	ids := make(map[string]bool)
	for _, r := range changes.Records {
		ids[r.ID] = true
	}
	return ids
}

func record(id string) *registry.Write {
	return &registry.Write{Put: []registry.Record{{Project: 1, Kind: "a", ID: id, Data: []byte(`{}`), Unique: []string{id}}}}
}

// answers waits until the store can be read again.
func answers(t *testing.T, s registry.Store) {
	t.Helper()
	for ctx, cancel := context.WithTimeout(t.Context(), time.Minute); ; {
		_, _, err := s.Revision(ctx)
		if err == nil {
			cancel()
			return
		}
		if ctx.Err() != nil {
			cancel()
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestServerKilled kills the server in the midst of writes, five times: what was acknowledged is there, what was refused is not, and the store works on
// by itself.
func TestServerKilled(t *testing.T) {
	server := postgrestest.New(t)
	s := open(t, server.Database(t))
	var mu sync.Mutex
	outcomes := make(map[string]error)
	for round := range 5 {
		var wrote atomic.Int32
		var writers sync.WaitGroup
		stop := make(chan struct{})
		for n := range 4 {
			writers.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					id := fmt.Sprintf("%d-%d-%d", round, n, i)
					_, err := s.Write(t.Context(), record(id))
					mu.Lock()
					outcomes[id] = err
					mu.Unlock()
					if err == nil {
						wrote.Add(1)
					} else {
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		for wrote.Load() < 20 {
			time.Sleep(time.Millisecond)
		}
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(t.Context(), 0); !errors.Is(err, registry.ErrUnavailable) {
			t.Errorf("reading while the server is away: %v", err)
		}
		if err := server.Run(); err != nil {
			t.Fatal(err)
		}
		answers(t, s)
		close(stop)
		writers.Wait()
	}
	there := idsIn(t, s)
	done, refused, doubtful := 0, 0, 0
	for id, err := range outcomes {
		switch {
		case err == nil:
			done++
			if !there[id] {
				t.Errorf("%s was acknowledged and is lost", id)
			}
		case errors.Is(err, registry.ErrInDoubt):
			doubtful++
		case errors.Is(err, registry.ErrUnavailable):
			refused++
			if there[id] {
				t.Errorf("%s was refused and is there: %v", id, err)
			}
		default:
			t.Errorf("%s: %v", id, err)
		}
	}
	t.Logf("%d writes were acknowledged, %d refused, %d in doubt", done, refused, doubtful)
}

// proxy stands between a store and its server, and cuts connections at a commit, or at another text.
type proxy struct {
	net.Listener

	cut     atomic.Int32           // what to do with the next commit
	at      atomic.Pointer[string] // what is taken for a commit too; nil for nothing
	refuses atomic.Bool
	silent  atomic.Pointer[chan struct{}] // until it is closed nothing comes through, and connections stay; nil for none
}

// silence lets nothing through, either way, until loud is called.
func (p *proxy) silence() (loud func()) {
	until := make(chan struct{})
	p.silent.Store(&until)
	return sync.OnceFunc(func() {
		p.silent.Store(nil)
		close(until)
	})
}

func (p *proxy) await() {
	if until := p.silent.Load(); until != nil {
		<-*until
	}
}

// What a proxy does with a commit.
const (
	passCommit int32 = iota
	loseCommit       // the server does not get it
	loseAnswer       // the server does it, and nobody hears of it
	loseServer       // that, and there are no connections from then on
)

// throughProxy returns a proxy and the DSN that goes through it.
func throughProxy(t *testing.T, dsn string) (*proxy, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l}
	_, rest, _ := strings.Cut(dsn, "@")
	target, _, _ := strings.Cut(rest, "/")
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(client, target) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return p, strings.Replace(dsn, target, l.Addr().String(), 1)
}

func (p *proxy) serve(client net.Conn, target string) {
	defer func() { _ = client.Close() }()
	if p.refuses.Load() {
		return
	}
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	done := make(chan struct{})
	defer func() { <-done }()
	var deaf atomic.Bool // what the server says is not passed on
	go func() {
		defer close(done)
		defer func() { _ = client.Close() }()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil || deaf.Load() {
				return
			}
			p.await()
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	defer func() { _ = server.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		at := p.at.Load()
		if bytes.Contains(buf[:n], []byte("commit\x00")) || at != nil && bytes.Contains(buf[:n], []byte(*at)) {
			switch p.cut.Swap(passCommit) {
			case loseCommit:
				return
			case loseServer:
				p.refuses.Store(true)
				fallthrough
			case loseAnswer:
				deaf.Store(true)
			}
		}
		p.await()
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
		if deaf.Load() {
			<-done // it has answered
			return
		}
	}
}

// TestLostCommits: if the connection is lost during a commit, the store finds out whether the write was done, where that is possible.
func TestLostCommits(t *testing.T) {
	dsn := postgrestest.DSN(t)
	p, through := throughProxy(t, dsn)
	s, beside := open(t, through), open(t, dsn)
	for _, tt := range []struct {
		name  string
		cut   int32
		want  error
		there bool
	}{
		{"passed", passCommit, nil, true},
		{"lost", loseCommit, registry.ErrUnavailable, false},
		{"answer lost", loseAnswer, nil, true},
		{"server lost", loseServer, registry.ErrInDoubt, true},
	} {
		p.cut.Store(tt.cut)
		revision, err := s.Write(t.Context(), record(tt.name))
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		now, _, again := beside.Revision(t.Context())
		if again != nil {
			t.Fatal(again)
		}
		if there := idsIn(t, beside)[tt.name]; there != tt.there || err == nil && revision != now {
			t.Errorf("%s: it is there: %t, want %t; its revision is %d of %d", tt.name, there, tt.there, revision, now)
		}
	}
	p.refuses.Store(false)
	answers(t, s)
	// What has no number that is listed is in doubt.
	p.cut.Store(loseAnswer)
	if err := s.ForgetProject(t.Context(), 1); !errors.Is(err, registry.ErrInDoubt) {
		t.Errorf("forgetting a project: %v", err)
	}
	answers(t, s)
	if err := s.Keep(t.Context(), "people-1", []byte("before")); err != nil {
		t.Fatal(err)
	}
	p.at.Store(new("after"))
	p.cut.Store(loseAnswer)
	if err := s.Keep(t.Context(), "people-1", []byte("after")); !errors.Is(err, registry.ErrInDoubt) {
		t.Errorf("keeping something: %v", err)
	}
	p.at.Store(nil)
	answers(t, s)
	if data, err := s.Kept(t.Context(), "people-1"); err != nil || string(data) != "after" {
		t.Errorf("what was kept in doubt is %q: %v", data, err)
	}
	for n := range 150 { // more than are listed
		if _, err := s.Write(t.Context(), record(fmt.Sprintf("after that %d", n))); err != nil {
			t.Fatal(err)
		}
	}
	p.cut.Store(loseAnswer)
	if _, err := s.Write(t.Context(), record("at last")); err != nil {
		t.Error(err)
	}
	var listed int
	if err := connect(t, dsn).QueryRow(t.Context(), `SELECT cardinality(recent) FROM analytics_registry`).Scan(&listed); err != nil || listed != 128 {
		t.Errorf("%d writes are listed: %v", listed, err)
	}
}

// TestSilentServer: when the server goes silent, those that wait for it give up soon, and later callers are refused at once.
func TestSilentServer(t *testing.T) {
	p, dsn := throughProxy(t, postgrestest.DSN(t))
	s := open(t, dsn+"&connect_timeout=3")
	if err := s.Keep(t.Context(), "people-1", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	loud := p.silence()
	defer loud()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	calls := map[string]func() error{
		"Revision": func() error { _, _, err := s.Revision(ctx); return err },
		"Load":     func() error { _, err := s.Load(ctx, 0); return err },
		"Write":    func() error { _, err := s.Write(ctx, record("x")); return err },
		"Entries":  func() error { _, _, err := s.Entries(ctx, 1, "log", registry.EntryPage{}); return err },
		"Keep":     func() error { return s.Keep(ctx, "people-1", []byte("other")) },
		"Kept":     func() error { _, err := s.Kept(ctx, "people-1"); return err },
		"KeptAll":  func() error { _, err := s.KeptAll(ctx, "people"); return err },
		"Lock":     func() error { _, _, err := s.Lock(ctx, "people-1", "one"); return err },
		"TryLock":  func() error { _, _, err := s.TryLock(ctx, "people-2", "one"); return err },
	}
	var all sync.WaitGroup
	for name, call := range calls {
		all.Go(func() {
			if err := call(); !errors.Is(err, registry.ErrUnavailable) && !errors.Is(err, registry.ErrInDoubt) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	for n := range 10 {
		for name, call := range calls {
			if err := call(); !errors.Is(err, registry.ErrUnavailable) {
				t.Fatalf("%s, the %dth time: %v", name, n, err)
			}
		}
	}
	loud()
	answers(t, s)
}

// TestSilentServerAndNoConnectionLeft: callers that only wait for a connection find out that the server is silent.
func TestSilentServerAndNoConnectionLeft(t *testing.T) {
	p, dsn := throughProxy(t, postgrestest.DSN(t))
	s := open(t, dsn+"&connect_timeout=3&pool_max_conns=1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := s.Contents(t.Context(), func(*registry.Contents) error {
		loud := p.silence()
		defer loud()
		for n := range 20 {
			if _, _, err := s.Revision(ctx); !errors.Is(err, registry.ErrUnavailable) {
				t.Fatalf("the %dth time: %v", n, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	answers(t, s)
}

// TestLockBehindSilentServers: a lock can be taken however many servers of the DSN are silent, each for as long as the DSN allows.
func TestLockBehindSilentServers(t *testing.T) {
	dsn := postgrestest.DSN(t)
	hosts := "@"
	for range 6 {
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = silent.Close() }()
		hosts += silent.Addr().String() + ","
	}
	s := open(t, strings.Replace(dsn, "@", hosts, 1)+"&connect_timeout=2")
	_, release, err := s.Lock(t.Context(), "people-1", "one")
	if err != nil {
		t.Fatal(err)
	}
	release()
}

// TestNobodyAnswers: a server that accepts connections but stays silent is away.
func TestNobodyAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	dsn := "postgres://u:hidden@" + l.Addr().String() + "/d?sslmode=disable&connect_timeout=1"
	s, err := postgres.Open(t.Context(), dsn)
	if err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("Open() = %v, %v", s, err)
	}
}

// TestNoRoomForLocks: a server that has no room for more locks is named as the reason, and those that are held stay.
func TestNoRoomForLocks(t *testing.T) {
	server, err := postgrestest.Start("-c", "max_locks_per_transaction=10", "-c", "max_connections=10")
	if errors.Is(err, postgrestest.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	dsn := server.Database(t)
	one, other := open(t, dsn), open(t, dsn)
	_, release, err := other.Lock(t.Context(), "opens-its-connection", "other")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	var held []func()
	for err == nil && len(held) < 20_000 {
		if _, release, err = one.Lock(t.Context(), fmt.Sprintf("people-%d", len(held)), "one"); err == nil {
			held = append(held, release)
		}
	}
	if !errors.Is(err, registry.ErrUnavailable) || !strings.Contains(err.Error(), "raise PostgreSQL's max_locks_per_transaction") {
		t.Errorf("after %d locks: %v", len(held), err)
	}
	for _, release := range held[len(held)/2:] {
		release()
	}
	if _, _, err := other.TryLock(t.Context(), "people-0", "other"); !errors.Is(err, registry.ErrHeld) {
		t.Errorf("a lock that is held, for another: %v", err)
	}
	for _, release := range held[:len(held)/2] {
		release()
	}
}

// TestLostSession: a store that has lost a lock with its connection keeps nothing more once another one has the lock.
func TestLostSession(t *testing.T) {
	dsn := postgrestest.DSN(t)
	one, other := open(t, dsn), open(t, dsn)
	_, release, err := one.Lock(t.Context(), "people-1", "one")
	if err != nil {
		t.Fatal(err)
	}
	_, releaseSecond, err := one.Lock(t.Context(), "people-2", "one")
	if err != nil {
		t.Fatal(err)
	}
	defer releaseSecond()
	if err := one.Keep(t.Context(), "people-1", []byte("before")); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, dsn).Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'`); err != nil {
		t.Fatal(err)
	}
	check := func() error { return one.CheckLocks(t.Context(), []string{"people-1", "people-2"}) }
	if err := check(); err != nil {
		t.Errorf("a lost lock that nobody has taken: %v", err)
	}
	others, releaseOther, err := other.Lock(t.Context(), "people-1", "other")
	if err != nil || !others {
		t.Fatalf("the lock of a lost connection: others %t, %v", others, err)
	}
	if err := check(); !errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("a lost lock that another one has: %v", err)
	}
	for _, data := range []string{"after", ""} {
		if err := one.Keep(t.Context(), "people-1", []byte(data)); err == nil {
			t.Errorf("%q was kept by who has lost the lock", data)
		}
	}
	if err := other.Keep(t.Context(), "people-1", []byte("by the other")); err != nil {
		t.Error(err)
	}
	if kept, err := one.Kept(t.Context(), "people-1"); err != nil || string(kept) != "by the other" {
		t.Errorf("%q is kept: %v", kept, err)
	}
	release()
	releaseOther()
	if others, release, err := one.Lock(t.Context(), "people-1", "one"); err != nil || !others {
		t.Errorf("the lock after that: others %t, %v", others, err)
	} else {
		release()
	}
}

// TestOthersInTheWay: waiting for other writers, or for a connection while others use them all, fails, but is no outage.
func TestOthersInTheWay(t *testing.T) {
	dsn := postgrestest.DSN(t)
	one, other := open(t, dsn+"&pool_max_conns=1"), open(t, dsn)
	err := one.Contents(t.Context(), func(*registry.Contents) error {
		var both sync.WaitGroup
		both.Go(func() {
			if _, _, err := one.Revision(t.Context()); !errors.Is(err, registry.ErrUnavailable) {
				t.Errorf("with no connection left: %v", err)
			}
		})
		both.Go(func() {
			if _, err := other.Write(t.Context(), record("x")); !errors.Is(err, registry.ErrUnavailable) {
				t.Errorf("while others write: %v", err)
			}
			if _, _, err := other.Revision(t.Context()); err != nil {
				t.Errorf("after waiting for others: %v", err)
			}
		})
		both.Wait()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := one.Revision(t.Context()); err != nil {
		t.Errorf("after waiting for a connection: %v", err)
	}
}

// TestLockLostWhileKeeping: a store that keeps something while another is getting the lock waits for that, and keeps nothing.
func TestLockLostWhileKeeping(t *testing.T) {
	dsn := postgrestest.DSN(t)
	s, conn := open(t, dsn), connect(t, dsn)
	for _, data := range []string{"after", ""} {
		_, release, err := s.Lock(t.Context(), "people-1", "one")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Keep(t.Context(), "people-1", []byte("before")); err != nil {
			t.Fatal(err)
		}
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `UPDATE analytics_locks SET turn = turn + 1, holder = 'other' WHERE name = 'people-1'`); err != nil {
			t.Fatal(err)
		}
		kept := make(chan error, 1)
		go func() { kept <- s.Keep(t.Context(), "people-1", []byte(data)) }()
		for waits := false; !waits && len(kept) == 0; time.Sleep(time.Millisecond) {
			const query = `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`
			if err := tx.QueryRow(t.Context(), query).Scan(&waits); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-kept; !errors.Is(err, registry.ErrUnavailable) || !strings.HasSuffix(err.Error(), "another node has it now") {
			t.Errorf("%q is kept by who loses the lock: %v", data, err)
		}
		if got, err := s.Kept(t.Context(), "people-1"); err != nil || string(got) != "before" {
			t.Errorf("%q is kept: %v", got, err)
		}
		release()
	}
}

// TestRegistryWhileAway: while the database is away, a registry shows what it knows and refuses writes; then it goes on, including what others wrote.
func TestRegistryWhileAway(t *testing.T) {
	server := postgrestest.New(t)
	dsn := server.Database(t)
	r, err := registry.Open(t.Context(), open(t, dsn), registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if _, err := r.CreateProject(t.Context(), registry.NewProject{Name: "before"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := r.CreateProject(t.Context(), registry.NewProject{Name: "meanwhile"}, time.Now()); !errors.Is(err, registry.ErrUnavailable) {
			t.Errorf("a write while the database is away: %v", err)
		}
	}
	if got := r.Snapshot().Projects(); len(got) != 1 || got[0].Name != "before" {
		t.Errorf("%d projects are known meanwhile", len(got))
	}
	if err := server.Run(); err != nil {
		t.Fatal(err)
	}
	other, err := registry.Open(t.Context(), open(t, dsn), registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if _, err := other.CreateProject(t.Context(), registry.NewProject{Name: "after"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	eventually.Is(t, "what another node wrote is seen", func() bool { return len(r.Snapshot().Projects()) == 2 })
	if _, err := r.CreateProject(t.Context(), registry.NewProject{Name: "at last"}, time.Now()); err != nil {
		t.Error(err)
	}
}
