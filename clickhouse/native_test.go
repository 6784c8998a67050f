package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/internal/freeport"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// oldServer starts the ClickHouse server packaged by Debian (18.16). It speaks the native protocol, which the
// embedded engine does not. Without the package the test is skipped, but not in CI.
func oldServer(t *testing.T) (address, web string) {
	t.Helper()
	ports, err := freeport.Find(1)
	if err != nil {
		t.Fatal(err)
	}
	return oldServerWith(t, ports[0], "")
}

// oldServerWith starts an old server with a given port for the native protocol and additional configuration.
func oldServerWith(t *testing.T, tcp int, more string) (address, web string) {
	t.Helper()
	binary, err := exec.LookPath("clickhouse-server")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("CI needs the package clickhouse-server")
		}
		t.Skip("the package clickhouse-server is not installed")
	}
	dir := t.TempDir()
	ports, err := freeport.Find(1)
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(tcp)
	address, web = "127.0.0.1:"+port, "127.0.0.1:"+strconv.Itoa(ports[0])
	for name, text := range map[string]string{
		"config.xml": `<yandex><logger><level>warning</level><log>` + dir + `/log</log><errorlog>` + dir + `/errors</errorlog></logger>
			<tcp_port>` + port + `</tcp_port><http_port>` + strconv.Itoa(ports[0]) + `</http_port><listen_host>127.0.0.1</listen_host><path>` + dir + `/data/</path><tmp_path>` + dir + `/tmp/</tmp_path>
			<users_config>` + dir + `/users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>
			<mark_cache_size>5368709</mark_cache_size><timezone>UTC</timezone>` + more + `</yandex>`,
		"users.xml": `<yandex><profiles><default></default></profiles><quotas><default></default></quotas><users><default><password>secret</password>
			<networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users></yandex>`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		t.Fatal(err)
	}
	stop, err := keepRunning(t, func() *exec.Cmd {
		server := exec.Command(binary, "--config-file="+filepath.Join(dir, "config.xml"))
		server.Dir, server.Stdout, server.Stderr = dir, output, output
		return server
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := output.Close(); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(output.Name()); t.Failed() {
			said, failed := os.ReadFile(filepath.Join(dir, "errors"))
			t.Logf("the server printed %v %s, and logged %v %.4000s", err, text, failed, said)
		}
	})
	harness.Eventually(t, patience, func() error {
		for _, address := range []string{web, address} {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				return fmt.Errorf("the server did not start: %w", err)
			}
			if err := conn.Close(); err != nil {
				return err
			}
		}
		return nil
	})
	return address, web
}

// maxCrashes is how often an old server is restarted.
const maxCrashes = 3

// keepRunning starts a server and restarts it when it crashes, like a service manager: on a busy machine, the ZooKeeper client of the old servers may
// bring one down.
func keepRunning(t *testing.T, command func() *exec.Cmd) (stop func(), err error) {
	t.Helper()
	server := command()
	if err := server.Start(); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	stopped, done := false, make(chan struct{})
	go func() {
		defer close(done)
		for crashes := 1; ; crashes++ {
			_ = server.Wait() // it crashed, or was killed
			mu.Lock()
			if stopped || crashes > maxCrashes {
				mu.Unlock()
				return
			}
			next := command()
			if next.Start() == nil {
				server = next
			}
			mu.Unlock()
			t.Log("the server crashed and was started again")
		}
	}()
	return func() {
		mu.Lock()
		stopped = true
		_ = server.Process.Kill() // it may have ended
		mu.Unlock()
		<-done
	}, nil
}

// native opens a client on an old server.
func native(t *testing.T, address string, config clickhouse.Config) *clickhouse.Client {
	t.Helper()
	config.DSN = "clickhouse://default:secret@" + address + "/default"
	c := openWith(t, config)
	c.TakeAsItIs()
	return c
}

func TestNative(t *testing.T) {
	address, _ := oldServer(t)
	t.Run("values", func(t *testing.T) { nativeValues(t, native(t, address, clickhouse.Config{})) })
	t.Run("cancel", func(t *testing.T) {
		nativeCancel(t, native(t, address, clickhouse.Config{Concurrency: 2, MaxResultRows: 1 << 40}))
	})
	t.Run("errors", func(t *testing.T) { nativeErrors(t, address) })
	t.Run("large rows", func(t *testing.T) { nativeLargeRows(t, address) })
	t.Run("sorted rows", func(t *testing.T) { nativeSortedRows(t, address) })
	t.Run("late", func(t *testing.T) { nativeLate(t, address) })
	t.Run("several hosts", func(t *testing.T) {
		c := native(t, "127.0.0.1:1,"+address, clickhouse.Config{})
		if diff := cmp.Diff([]string{"[1]"}, ask(t, c, 1, "SELECT 1")); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
	})
}

func nativeValues(t *testing.T, c *clickhouse.Client) {
	t.Helper()
	tests := []struct{ name, sql, want string }{
		{"integers", "toInt8(-128), toUInt64('18446744073709551615'), toInt64('-9223372036854775808')", `[-128, 18446744073709551615, -9223372036854775808]`},
		{"floats", "1.5, toFloat32(0.1), 1e21, 1/0, 0/0", `[1.5, 0.1, 1e21, null, null]`},
		{"texts", `'a"b\n', 'é', toFixedString('ab', 3)`, `["a\"b\n", "é", "ab\u0000"]`},
		{"times", "toDateTime('2020-07-02 03:04:05', 'Europe/Berlin'), toDateTime('2020-01-02 03:04:05', 'UTC'), toDate('2020-01-02')", `["2020-07-02T03:04:05+02:00", "2020-01-02T03:04:05Z", "2020-01-02"]`},
		{"the hour that clocks show twice", "toDateTime(1603584000, 'Europe/Berlin'), toDateTime(1603587600, 'Europe/Berlin')", `["2020-10-25T02:00:00+02:00", "2020-10-25T02:00:00+01:00"]`},
		{"NULL", "NULL, toNullable(1), toUUID('be349c38-5f7e-41eb-9f47-57f1fa0d45e8')", `[null, 1, "be349c38-5f7e-41eb-9f47-57f1fa0d45e8"]`},
		{"lists", "[1, NULL], [[toDate('2020-01-02')]], (1, 'a'), toDecimal64('1.50', 2)", `[[1,null], [["2020-01-02"]], [1,"a"], "1.5"]`},
	}
	for _, tt := range tests {
		if diff := cmp.Diff([]string{tt.want}, ask(t, c, 1, "SELECT "+tt.sql)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	var out rows
	stats, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT number AS n, toString(number) FROM numbers(1000000)", Project: 1}, &out)
	if err != nil {
		t.Fatal(err)
	}
	if stats.Rows != 1_000_000 || stats.ReadRows < 1_000_000 || len(out.Texts) != 1_000_000 || out.Texts[999_999] != `[999999, "999999"]` {
		t.Errorf("stats %+v, last row %s", stats, out.Texts[len(out.Texts)-1])
	}
	want := []clickhouse.Column{{Name: "n", Type: "UInt64"}, {Name: "toString(number)", Type: "String"}}
	if diff := cmp.Diff(want, out.Header); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

// nativeCancel stops queries in every way, many times: the server must stop each one, and the pool must keep its connections.
func nativeCancel(t *testing.T, c *clickhouse.Client) {
	t.Helper()
	before := runtime.NumGoroutine()
	for round := range 20 {
		for name, run := range map[string]func(sql string) error{
			"before the first row": func(string) error {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				sql := "SELECT count() FROM (SELECT number FROM system.numbers LIMIT 1000000000000) WHERE NOT ignore(sipHash64(number))"
				_, err := c.Query(ctx, clickhouse.Query{SQL: sql, Project: 1}, &rows{})
				return wantError(err, context.DeadlineExceeded)
			},
			"among the rows": func(sql string) error {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				seen := 0
				_, err := c.Query(ctx, clickhouse.Query{SQL: sql, Project: 1}, endless{func() error {
					if seen++; seen == 100_000 {
						cancel()
					}
					return nil
				}})
				return wantError(err, context.Canceled)
			},
			"by the sink": func(sql string) error {
				_, err := c.Query(t.Context(), clickhouse.Query{SQL: sql, Project: 1}, endless{func() error { return errEnough }})
				return wantError(err, errEnough)
			},
		} {
			if err := run("SELECT number FROM system.numbers LIMIT 1000000000000"); err != nil {
				t.Fatalf("%s, round %d: %v", name, round, err)
			}
		}
	}
	deadline := time.Now().Add(patience)
	for {
		got := ask(t, c, 1, "SELECT count() FROM system.processes")
		if got[0] == "[1]" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("queries still run: %s", got)
		}
	}
	for runtime.NumGoroutine() > before+4 {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
		runtime.Gosched()
	}
}

// nativeLargeRows queries rows and results above the limits. They must be stopped while they arrive.
func nativeLargeRows(t *testing.T, address string) {
	t.Helper()
	const mib = 1 << 20
	for _, tt := range []struct {
		name, sql string
		config    clickhouse.Config
		query     clickhouse.Query
	}{
		{"a row above the result's bound", "SELECT arrayStringConcat(arrayMap(x -> 'xxxxxxxxxxxxxxxxxxxx', range(5000000)))", clickhouse.Config{MaxResultBytes: 16 * mib}, clickhouse.Query{}},
		{"many rows", "SELECT arrayStringConcat(arrayMap(x -> 'xxxxxxxxxxxxxxxxxxxx', range(number % 2 + 50))) FROM (SELECT number FROM system.numbers LIMIT 1000000)", clickhouse.Config{MaxResultBytes: 16 * mib}, clickhouse.Query{}},
		{"a row above the bound of rows", "SELECT arrayStringConcat(arrayMap(x -> 'xxxxxxxxxxxxxxxxxxxx', range(5000000)))", clickhouse.Config{}, clickhouse.Query{Unbounded: true}},
		{"a row whose JSON is larger than it", `SELECT arrayStringConcat(arrayMap(x -> '\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01', range(800000)))`, clickhouse.Config{MaxResultBytes: 32 * mib}, clickhouse.Query{}},
	} {
		tt.config.MaxExecutionTime = patience
		c := native(t, address, tt.config)
		tt.query.SQL, tt.query.Project = tt.sql, 1
		allocated := allocations()
		stats, err := c.Query(t.Context(), tt.query, &rows{})
		if kind := kindOf(err); kind != clickhouse.TooLarge {
			t.Errorf("%s: %v after %d rows, want too large", tt.name, err, stats.Rows)
		}
		if took := allocations() - allocated; took > 768*mib { // in total, including copies of growing buffers, most of it short-lived
			t.Errorf("%s took %d MiB", tt.name, took/mib)
		}
		if got := ask(t, c, 1, "SELECT 1"); got[0] != "[1]" {
			t.Errorf("after %s: %s", tt.name, got)
		}
	}
}

// nativeSortedRows queries sorted rows, of which a block has many whatever their size. They are within the limits, also if they are taken slowly.
func nativeSortedRows(t *testing.T, address string) {
	t.Helper()
	for _, tt := range []struct {
		name      string
		rows      int
		kilobytes int
		unbounded bool
	}{
		{"a result", 2800, 20, false},
		{"a file", 1000, 100, true},
	} {
		c := native(t, address, clickhouse.Config{MaxResultBytes: 64 << 20, MaxExecutionTime: patience})
		read := 0
		sink := endless{func() error {
			if read++; read%200 == 1 {
				time.Sleep(100 * time.Millisecond) // blocks arrive meanwhile
			}
			return nil
		}}
		sql := fmt.Sprintf("SELECT arrayStringConcat(arrayMap(x -> 'xxxxxxxxxxxxxxxxxxxx', range(%d + number %% 2))) FROM "+
			"(SELECT number FROM system.numbers LIMIT %d) ORDER BY number", tt.kilobytes*50, tt.rows)
		if _, err := c.Query(t.Context(), clickhouse.Query{SQL: sql, Project: 1, Unbounded: tt.unbounded}, sink); err != nil || read != tt.rows {
			t.Errorf("%s: %d rows of %d, %v", tt.name, read, tt.rows, err)
		}
	}
}

// nativeLate runs a query that exceeds the limit on a server that does not know the limit: the client ends the query itself,
// and kills it on the server.
func nativeLate(t *testing.T, address string) {
	t.Helper()
	c := native(t, address, clickhouse.Config{MaxExecutionTime: time.Second})
	c.Forget("max_execution_time")
	_, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT count() FROM system.numbers WHERE NOT ignore(sipHash64(number))", Project: 1}, &rows{})
	if kind := kindOf(err); kind != clickhouse.Timeout {
		t.Errorf("got %v, want a timeout", err)
	}
	harness.Eventually(t, patience, func() error {
		if got := ask(t, c, 1, "SELECT count() FROM system.processes WHERE query LIKE '%sipHash64%'"); got[0] != "[1]" { // the one is this query
			return fmt.Errorf("the query still runs: %s", got)
		}
		return nil
	})
}

func wantError(got, want error) error {
	if !errors.Is(got, want) {
		return fmt.Errorf("got %w, want %w", got, want)
	}
	return nil
}

func nativeErrors(t *testing.T, address string) {
	t.Helper()
	tests := []struct {
		name, sql string
		config    clickhouse.Config
		want      clickhouse.Error
	}{
		{"a mistake", "SELECT nothing(1)", clickhouse.Config{}, clickhouse.Error{Kind: clickhouse.UserError, Code: 46, Name: "unknown_function", Message: "Unknown function nothing."}},
		{"among the rows", "SELECT throwIf(number = 900000) FROM (SELECT number FROM system.numbers LIMIT 1000000)", clickhouse.Config{}, clickhouse.Error{Kind: clickhouse.UserError, Code: 395, Name: "function_throw_if_value_is_non_zero", Message: "Value passed to 'throwIf' function is non zero."}},
		{"rows", "SELECT number FROM system.numbers LIMIT 1000000", clickhouse.Config{MaxResultRows: 10}, clickhouse.Error{Kind: clickhouse.TooLarge, Code: 396, Name: "too_many_rows_or_bytes", Message: "the result exceeds its size limit"}},
		{"time", "SELECT count() FROM (SELECT number FROM system.numbers LIMIT 1000000000000)", clickhouse.Config{MaxExecutionTime: 1}, clickhouse.Error{Kind: clickhouse.Timeout, Code: 159, Name: "timeout_exceeded", Message: "the query exceeded its time limit"}},
	}
	for _, tt := range tests {
		c := native(t, address, tt.config)
		err := untilServerSays(func() error {
			_, err := c.Query(t.Context(), clickhouse.Query{SQL: tt.sql, Project: 1}, &rows{})
			return err
		})
		var got *clickhouse.Error
		if !errors.As(err, &got) {
			t.Errorf("%s: got %v", tt.name, err)
			continue
		}
		if diff := cmp.Diff(tt.want, *got, ignoreCause); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%v", tt.name, diff, errors.Unwrap(got))
		}
		if got := ask(t, c, 1, "SELECT 1"); got[0] != "[1]" {
			t.Errorf("after %s: %s", tt.name, got)
		}
	}
	wrong := openWith(t, clickhouse.Config{DSN: "clickhouse://default:wrong@" + strings.TrimSpace(address)})
	err := wrong.Ping(t.Context())
	var got *clickhouse.Error
	if !errors.As(err, &got) || got.Kind != clickhouse.Unavailable {
		t.Errorf("a wrong password: %v", err)
	}
	old := openWith(t, clickhouse.Config{DSN: "clickhouse://default:secret@" + address})
	_, err = old.Query(t.Context(), clickhouse.Query{SQL: "SELECT 1", Project: 1}, &rows{})
	if !errors.As(err, &got) || got.Message != "ClickHouse old is too old" && !strings.Contains(got.Message, "too old") {
		t.Errorf("an old server: %v (%v)", err, errors.Unwrap(err))
	}
}
