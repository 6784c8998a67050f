package postgres_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/postgres"
	"github.com/caddy-analytics/caddy-analytics/registry/registrytest"
)

// What a child of TestCrash and TestLockOfTheDead does, and to which database; in their absence this is no such child.
const (
	crashDSN = "REGISTRY_CRASH_DSN"
	lockDSN  = "REGISTRY_LOCK_DSN"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(crashDSN); dsn != "" {
		fmt.Fprintln(os.Stderr, child(dsn, func(s registry.Store) error { return registrytest.WriteUntilKilled(s, os.Stdout) }))
		os.Exit(1)
	}
	if dsn := os.Getenv(lockDSN); dsn != "" {
		fmt.Fprintln(os.Stderr, child(dsn, func(s registry.Store) error { return registrytest.HoldLock(s, func() { fmt.Println("ready") }) }))
		os.Exit(1)
	}
	os.Exit(postgrestest.Main(m))
}

func child(dsn string, do func(registry.Store) error) error {
	s, err := postgres.Open(context.Background(), dsn)
	if err != nil {
		return err
	}
	return do(s)
}

// placeAt is a Place in a database.
func placeAt(dsn string) registrytest.Place {
	return func(t *testing.T) registry.Store {
		t.Helper()
		s, err := postgres.Open(t.Context(), dsn)
		if err != nil {
			t.Fatalf("Open() = %v", err)
		}
		return s
	}
}

func newPlace(t *testing.T) registrytest.Place {
	t.Helper()
	return placeAt(postgrestest.DSN(t))
}

// open opens a store that is closed with the test.
func open(tb testing.TB, dsn string) *postgres.Store {
	tb.Helper()
	s, err := postgres.Open(tb.Context(), dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore(t *testing.T) { registrytest.Run(t, newPlace) }

// TestStoreInItsOwnSchema: two registries in one database know nothing of each other.
func TestStoreInItsOwnSchema(t *testing.T) {
	dsn := postgrestest.DSN(t)
	one, other := open(t, dsn+"&search_path=one"), open(t, dsn+"&search_path=other")
	if _, err := one.Write(t.Context(), &registry.Write{Put: []registry.Record{{Project: 1, Kind: "a", ID: "x", Data: []byte(`1`)}}}); err != nil {
		t.Fatal(err)
	}
	if revision, _, err := other.Revision(t.Context()); err != nil || revision != 0 {
		t.Errorf("the other registry is at revision %d: %v", revision, err)
	}
	_, release, err := one.Lock(t.Context(), "people-1", "one")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	_, free, err := other.Lock(t.Context(), "people-1", "other")
	if err != nil {
		t.Fatal(err)
	}
	free()
	var tables int
	conn := connect(t, dsn)
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`).Scan(&tables); err != nil || tables != 0 {
		t.Errorf("%d tables are in the schema public: %v", tables, err)
	}
}

// TestLongSchema: a schema may have a name as long as PostgreSQL allows, and its writers notify the others.
func TestLongSchema(t *testing.T) {
	dsn := postgrestest.DSN(t) + "&search_path=" + strings.Repeat("s", 63)
	writer, watcher := open(t, dsn), open(t, dsn)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	told := make(chan struct{}, 100)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		if err := watcher.Watch(ctx, func() { told <- struct{}{} }); err != nil {
			t.Error(err)
		}
	})
	heard := func(of string) {
		t.Helper()
		select {
		case <-told:
		case <-ctx.Done():
			t.Fatalf("nobody hears of %s", of)
		}
	}
	heard("what was there before")
	if _, err := writer.Write(t.Context(), record("x")); err != nil {
		t.Fatal(err)
	}
	heard("a write")
}

// connect opens a connection beside the store.
func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestCrash(t *testing.T) {
	server := postgrestest.New(t)
	dsn := server.Database(t)
	registrytest.Crash(t, placeAt(dsn), startable(crashDSN, dsn))
}

func startable(name, value string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), name+"="+value)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestLockOfTheDead(t *testing.T) {
	dsn := postgrestest.DSN(t)
	cmd := startable(lockDSN, dsn)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the child said %q: %v", line, err)
	}
	registrytest.LockOfTheDead(t, placeAt(dsn), kill)
}

// TestOpenByManyAtOnce: ten nodes make the tables of one database.
func TestOpenByManyAtOnce(t *testing.T) {
	dsn := postgrestest.DSN(t) + "&search_path=shared_by_ten"
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			s, err := postgres.Open(t.Context(), dsn)
			if err != nil {
				t.Errorf("Open() = %v", err)
				return
			}
			if _, _, err := s.Revision(t.Context()); err != nil {
				t.Error(err)
			}
			_ = s.Close()
		})
	}
	all.Wait()
}

// TestNewerVersion: tables of a newer version are neither opened nor written to.
func TestNewerVersion(t *testing.T) {
	dsn := postgrestest.DSN(t)
	before := open(t, dsn)
	if _, err := connect(t, dsn).Exec(t.Context(), `UPDATE analytics_registry SET version = 99`); err != nil {
		t.Fatal(err)
	}
	const want = "its tables are at version 99, and this program knows versions up to 2: a newer version of the program wrote it"
	if s, err := postgres.Open(t.Context(), dsn); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("Open() = %v, %v", s, err)
	}
	for name, w := range map[string]registry.Write{
		"a record": {Put: []registry.Record{{Project: 1, Kind: "a", ID: "x", Data: []byte(`1`)}}},
		"an entry": {Append: []registry.Entry{{Project: 1, Log: "log", ID: "x"}}},
	} {
		if _, err := before.Write(t.Context(), &w); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("writing %s: %v", name, err)
		}
	}
	if changes, err := before.Load(t.Context(), 0); err != nil || changes.Revision != 0 || len(changes.Records) != 0 {
		t.Errorf("it was written: %+v, %v", changes, err)
	}
	if state, err := registry.InspectStore(t.Context(), dsn, ""); err != nil || state.Version != 99 || state.Current != 2 {
		t.Errorf("InspectStore() = %+v, %v", state, err)
	}
}

func TestInspect(t *testing.T) {
	dsn := postgrestest.DSN(t)
	inspect := func() registry.StoreState {
		t.Helper()
		state, err := registry.InspectStore(t.Context(), dsn, "")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(state.Name, "secret") || !strings.HasPrefix(state.Name, "postgres://127.0.0.1:") {
			t.Errorf("its name is %q", state.Name)
		}
		state.Name = ""
		return state
	}
	if diff := cmp.Diff(registry.StoreState{Current: 2}, inspect()); diff != "" {
		t.Errorf("an empty database (-want +got):\n%s", diff)
	}
	open(t, dsn)
	if diff := cmp.Diff(registry.StoreState{Version: 2, Current: 2}, inspect()); diff != "" {
		t.Errorf("after opening it (-want +got):\n%s", diff)
	}
}

// TestCommitsWaitForTheDisk: whatever the server's config says.
func TestCommitsWaitForTheDisk(t *testing.T) {
	dsn := postgrestest.DSN(t)
	if _, err := connect(t, dsn).Exec(t.Context(), `ALTER ROLE analytics SET synchronous_commit = off`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), dsn)
		if err == nil {
			_, err = conn.Exec(context.Background(), `ALTER ROLE analytics RESET synchronous_commit`)
			_ = conn.Close(context.Background()) // it has done its work
		}
		if err != nil {
			t.Error(err)
		}
	})
	s := open(t, dsn)
	for range 20 { // of whichever connection
		if got, err := s.Setting(t.Context(), "synchronous_commit"); err != nil || got != "on" {
			t.Fatalf("synchronous_commit is %q: %v", got, err)
		}
	}
}

func TestCheckDSN(t *testing.T) {
	for _, tt := range []struct{ dsn, want string }{
		{"postgres://u:hidden@db.example.com/analytics", ""},
		{"postgresql://u:hidden@one:5432,two:5433/analytics?sslmode=require", ""},
		{"postgres:///analytics?host=/run/postgresql", ""},
		{"postgres://u:hidden@db/analytics?search_path=caddy&pool_max_conns=20&connect_timeout=1", ""},
		{"postgres://u:hidden@db/analytics?search_path=a,b", "the search_path of the registry's DSN has to be the name of one schema, of lower case letters, digits and underscores"},
		{"postgres://u:sslmode@db/analytics?sslmode=unheard", "the registry's postgres:// DSN is not valid: an option of it can't be read"},
		{"postgres://u:hidden@db/analytics?sslmode=unheard", "the registry's postgres:// DSN is not valid: failed to configure TLS (sslmode is invalid)"},
		{"postgres://u:hidden@db/analytics?sslrootcert=/nowhere/ca.pem", "the registry's postgres:// DSN is not valid: failed to configure TLS (unable to read CA file: open /nowhere/ca.pem: no such file or directory)"},
		{"postgres://u:hidden@db:port/analytics", "a registry in PostgreSQL is given as postgres://USER:PASSWORD@HOST/DATABASE, and special characters in it as %XX"},
		{"postgres://u:hid%zen@db/analytics", "a registry in PostgreSQL is given as postgres://USER:PASSWORD@HOST/DATABASE, and special characters in it as %XX"},
		{"postgres://u:hidden@db/analytics?default_query_exec_mode=simple_protocol", "the default_query_exec_mode of the registry's DSN has to be cache_statement, cache_describe or describe_exec"},
	} {
		got := ""
		if err := registry.CheckDSN(tt.dsn); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("CheckDSN(%q) = %q, want %q", tt.dsn, got, tt.want)
		}
	}
}

// FuzzCheckDSN: whatever is wrong with a DSN, the error does not have its password.
func FuzzCheckDSN(f *testing.F) {
	const secret = "Kdx7mQ2wRt"
	for _, seed := range [][2]string{{"postgres://u:", "@h/d"}, {"postgres://u:", "@h:x/d"}, {"postgres://h/d?password=", "&sslmode=x"}, {"postgresql://", ""}, {"postgres://u:", "%zz@h"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		if !strings.HasPrefix(before, "postgres") || !strings.HasSuffix(before, ":") && !strings.HasSuffix(before, "password=") {
			return
		}
		if err := registry.CheckDSN(before + secret + after); err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s", err)
		}
	})
}
