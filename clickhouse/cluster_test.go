package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/internal/freeport"
	"github.com/caddy-analytics/caddy-analytics/physical"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// zookeeper starts the ZooKeeper packaged by Debian, and returns its port. Without the package the test is skipped, but not in CI.
func zookeeper(t *testing.T) (port int) {
	t.Helper()
	const jar = "/usr/share/java/zookeeper.jar"
	java, err := exec.LookPath("java")
	if _, missing := os.Stat(jar); err != nil || missing != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("CI needs the packages zookeeper and default-jre-headless")
		}
		t.Skip("the packages zookeeper and default-jre-headless are not installed")
	}
	ports, err := freeport.Find(1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("tickTime=2000\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n", filepath.Join(dir, "data"), ports[0])
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(java, "-Xmx128m", "-cp", jar, "org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = server.Wait() // it was killed
	})
	harness.Eventually(t, patience, func() error { // the old servers give up, or die, without it
		conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(ports[0]))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		// A client that connects while ZooKeeper starts may never get an answer.
		if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		if _, err := conn.Write([]byte("srvr")); err != nil {
			return err
		}
		if said, err := io.ReadAll(conn); err != nil || !strings.Contains(string(said), "Mode: ") {
			return fmt.Errorf("ZooKeeper says %q, %w", said, errors.Join(err, errors.New("and does not serve yet")))
		}
		return nil
	})
	return ports[0]
}

// oldCluster starts two of Debian's servers. They are the replicas of the only shard of the cluster "main", and the two shards of "halves". shards
// has the number that each server uses for its own shard, which decides whose replicas its tables are.
func oldCluster(t *testing.T, shards [2]int) (addresses []string) {
	t.Helper()
	keeper := zookeeper(t)
	ports, err := freeport.Find(4)
	if err != nil {
		t.Fatal(err)
	}
	replica := func(n int) string {
		return `<replica><host>127.0.0.1</host><port>` + strconv.Itoa(ports[n]) + `</port><user>default</user><password>secret</password></replica>`
	}
	for n := range 2 {
		address, _ := oldServerWith(t, ports[n], fmt.Sprintf(`<zookeeper><node><host>127.0.0.1</host><port>%d</port></node></zookeeper>
			<distributed_ddl><path>/ddl</path></distributed_ddl><interserver_http_host>127.0.0.1</interserver_http_host>
			<interserver_http_port>%d</interserver_http_port><macros><shard>%d</shard><replica>%d</replica></macros>
			<remote_servers><main><shard><internal_replication>true</internal_replication>%s%s</shard></main>
			<halves><shard>%s</shard><shard>%s</shard></halves></remote_servers>`,
			keeper, ports[2+n], shards[n], n, replica(0), replica(1), replica(0), replica(1)))
		addresses = append(addresses, address)
	}
	return addresses
}

// textLayout returns a statement that creates a table in a form that a server of 2018 supports: properties are strings. That server has no default
// path for replicas, so the statement names it.
func textLayout(name, sql string) string {
	for _, r := range []struct{ old, by string }{
		{`JSON\([^)]*\)`, "String"},
		{`LowCardinality\(String\)`, "String"},
		{`DateTime64\(6, 'UTC'\)`, "DateTime('UTC')"},
		{`now64\(6\)`, "now()"},
		{`,\s+INDEX [^\n]*`, ""},
		{` SETTINGS .*`, ""},
		{`toYear\(timestamp\)`, "toYear(timestamp)"},
		{`(Replicated\w+)\(`, "${1}('/tables/{shard}/" + name + "', '{replica}', "},
		{`ReplacingMergeTree\(([^)]*), _timestamp\)`, "ReplacingMergeTree($1, _timestamp)"},
	} {
		sql = regexp.MustCompile(r.old).ReplaceAllString(sql, r.by)
	}
	return sql
}

// TestCluster creates the tables on a cluster of two old servers with ZooKeeper: each gets the other's rows, changes and drops reach both, and a
// cluster of two shards is refused.
func TestCluster(t *testing.T) {
	addresses := oldCluster(t, [2]int{1, 1})
	open := func(cluster, address string) *clickhouse.Client {
		return native(t, address, clickhouse.Config{Cluster: cluster})
	}
	both := []*clickhouse.Client{open("main", addresses[0]), open("main", addresses[1])}
	does(t, func() error { return both[0].CheckCluster(t.Context()) })
	for cluster, want := range map[string]string{
		"halves": `the cluster "halves" has 2 shards, but the config names hosts for 1; see docs/clickhouse-hosts.md`,
		"none":   `ClickHouse has no cluster "none"; its table system.clusters lists those that it has`,
	} {
		c := open(cluster, addresses[0])
		if err := answered(t, func() error { return c.CheckCluster(t.Context()) }); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	define := func(sql string) {
		t.Helper()
		does(t, func() error { return both[0].Define(t.Context(), sql) })
	}
	for _, sql := range oldTables("main") {
		define(sql)
	}
	for _, c := range both {
		shows(t, c, replicatedTables, fmt.Sprintf("[%d]", len(physical.WithoutLogs())))
	}
	does(t, func() error {
		return both[0].Exec(t.Context(), "INSERT INTO person_distinct_id2 (team_id, distinct_id) SELECT 1, 'a'")
	})
	shows(t, both[1], "SELECT team_id, distinct_id FROM person_distinct_id2", `[1, "a"]`)
	define("ALTER TABLE `groups` ON CLUSTER `main` ADD COLUMN later UInt8")
	for _, c := range both {
		shows(t, c, "SELECT count() FROM system.columns WHERE table = 'groups' AND name = 'later'", "[1]")
	}
	define("DROP TABLE IF EXISTS `events` ON CLUSTER `main`")
	for _, c := range both {
		shows(t, c, replicatedTables, fmt.Sprintf("[%d]", len(physical.WithoutLogs())-1))
	}
}

// oldTables returns statements that create the tables of projects on a cluster of old servers. The logs are left out, because these servers do not
// know their settings.
func oldTables(cluster string) (statements []string) {
	for i := range physical.Tables {
		if table := &physical.Tables[i]; !physical.IsLog(table.Name) {
			statements = append(statements, textLayout(table.Name, clickhouse.CreateTable(table, cluster)))
		}
	}
	return statements
}

// replicatedTables counts the replicated tables of a server.
const replicatedTables = "SELECT count() FROM system.tables WHERE database = 'default' AND engine LIKE 'Replicated%MergeTree'"

// answered repeats do until no server is away, and returns its error.
func answered(t *testing.T, do func() error) (err error) {
	t.Helper()
	harness.Eventually(t, patience, func() error {
		if err = do(); kindOf(err) == clickhouse.Unavailable {
			return err
		}
		return nil
	})
	return err
}

// does repeats do until no server is away: one that crashed is started again.
func does(t *testing.T, do func() error) {
	t.Helper()
	var last error
	harness.Eventually(t, patience, func() error {
		last = do()
		failed, ok := errors.AsType[*clickhouse.Error](last)
		if _, said := errors.AsType[*driver.Exception](last); said || ok && failed.Kind != clickhouse.Unavailable {
			return nil
		}
		return last
	})
	if last != nil {
		t.Fatal(last)
	}
}

// shows waits until a query returns the wanted rows.
func shows(t *testing.T, c *clickhouse.Client, sql string, want ...string) {
	t.Helper()
	harness.Eventually(t, patience, func() error {
		var out rows
		if _, err := c.Query(t.Context(), clickhouse.Query{SQL: sql, Project: 1}, &out); err != nil {
			return err
		}
		if diff := cmp.Diff(want, out.Texts); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// TestClusterOfShards creates the tables on a cluster of two shards, with a client for each: neither gets the other's rows, and the tables name their
// replicas.
func TestClusterOfShards(t *testing.T) {
	addresses := oldCluster(t, [2]int{1, 2})
	var shards []*clickhouse.Client
	for _, address := range addresses {
		c := native(t, address, clickhouse.Config{Cluster: "halves", Shards: 2})
		does(t, func() error { return c.CheckCluster(t.Context()) })
		shards = append(shards, c)
	}
	three := native(t, addresses[0], clickhouse.Config{Cluster: "halves", Shards: 3})
	const want = `the cluster "halves" has 2 shards, but the config names hosts for 3; see docs/clickhouse-hosts.md`
	if err := answered(t, func() error { return three.CheckCluster(t.Context()) }); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	for _, sql := range oldTables("halves") {
		does(t, func() error { return shards[0].Define(t.Context(), sql) })
	}
	paths := make([]map[string]string, len(shards))
	for n, c := range shards {
		shows(t, c, replicatedTables, fmt.Sprintf("[%d]", len(physical.WithoutLogs())))
		does(t, func() (err error) {
			paths[n], err = c.ReplicaPaths(t.Context())
			return err
		})
		does(t, func() error {
			return c.Exec(t.Context(), fmt.Sprintf("INSERT INTO person_distinct_id2 (team_id, distinct_id) SELECT 1, 'of %d'", n))
		})
	}
	for _, table := range physical.WithoutLogs() {
		if of := paths[0][table]; of == "" || of == paths[1][table] {
			t.Errorf("the table %s has the replicas of %q and %q", table, of, paths[1][table])
		}
	}
	for n, c := range shards {
		shows(t, c, "SELECT distinct_id FROM person_distinct_id2", fmt.Sprintf(`["of %d"]`, n))
	}
}

// TestClusterStatements: today's servers can parse all statements for a cluster. The embedded engine parses them before it says that it is in no
// cluster.
func TestClusterStatements(t *testing.T) {
	c := openWith(t, clickhouse.Config{DSN: engine.DSN(), Cluster: "main"})
	statements := []string{
		"ALTER TABLE `events` ON CLUSTER `main` ADD COLUMN IF NOT EXISTS a UInt8 AFTER `uuid`",
		"ALTER TABLE `events` ON CLUSTER `main` MODIFY SETTING min_bytes_for_wide_part = 1",
		"DROP TABLE IF EXISTS `endpoint_1` ON CLUSTER `main` SYNC",
	}
	for i := range physical.Tables {
		statements = append(statements, clickhouse.CreateTable(&physical.Tables[i], "main"))
	}
	for _, sql := range statements {
		if e := clickhouse.Classify(c.Define(t.Context(), sql)); e.Name != "cluster_doesnt_exist" && e.Name != "query_is_prohibited" {
			t.Errorf("%s: %v", sql, e)
		}
	}
	err := c.Migrate(t.Context())
	if want := `ClickHouse has no cluster "main"; its table system.clusters lists those that it has`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestClusterName: names that could be SQL are refused.
func TestClusterName(t *testing.T) {
	for name, ok := range map[string]bool{"main": true, "a-b.c_1": true, "": true, "a`b": false, "a b": false, "{cluster}": false, "'a'": false} {
		err := clickhouse.Config{DSN: "http://a:1", Cluster: name}.Validate()
		if (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestHostsWithRowsOfTheirOwn: hosts that would give different answers are refused, two names of one server are not.
func TestHostsWithRowsOfTheirOwn(t *testing.T) {
	_, logins, addresses := engines(t)
	same, _ := relayed(t, "http", logins[0], "", addresses[0], addresses[0])
	same = strings.Replace(same, "/default", "/analytics", 1)
	if err := openWith(t, clickhouse.Config{DSN: same}).Migrate(t.Context()); err != nil {
		t.Errorf("two names of one server: %v", err)
	}
	others, relays := relayed(t, "http", logins[0], "", addresses[0], addresses[1])
	relays[1].Rewrite(logins[0], logins[1])
	others = strings.Replace(others, "/default", "/analytics", 1)
	c := openWith(t, clickhouse.Config{DSN: others})
	host := relays[1].Address()
	for _, want := range []string{
		"the host " + host + " has no table events. Several hosts must have the same rows: see docs/clickhouse-hosts.md",
		"the host " + host + " keeps rows of its own in the table events, which has the engine ReplacingMergeTree. Several hosts must have the same rows: see docs/clickhouse-hosts.md",
	} {
		if err := c.Migrate(t.Context()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		second := openWith(t, clickhouse.Config{DSN: strings.Replace(others, relays[0].Address()+",", "", 1)})
		if err := second.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 { // it is not asked, even if the other one is away
		relays[0].Set(harness.Refuses)
		if _, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT 1", Project: 1}, &rows{}); kindOf(err) != clickhouse.Unavailable {
			t.Fatalf("got %v", err)
		}
	}
}

// TestInsertMoves: an insert whose outcome is unknown goes to another host only if the tables are replicated, and its rows are stored once.
func TestInsertMoves(t *testing.T) {
	_, logins, addresses := engines(t)
	for _, replicated := range []bool{true, false} {
		t.Run(fmt.Sprint(replicated), func(t *testing.T) {
			dsn, relays := relayed(t, "http", logins[0], "", addresses[0], addresses[0])
			c := openWith(t, clickhouse.Config{DSN: strings.Replace(dsn, "/default", "/analytics", 1)})
			wake(t, c)
			if replicated {
				c.SetReplicated()
			}
			p := project()
			insert := func(name string) error {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				return c.Insert(ctx, clickhouse.Batch{
					Table: "person_distinct_id2", Token: uuid.NewString(), Columns: []clickhouse.Column{{Name: "team_id", Type: "Int64"}, {Name: "distinct_id", Type: "String"}},
					Rows: func(yield func([]any) bool) { yield([]any{p, name}) },
				})
			}
			if err := insert("before"); err != nil {
				t.Fatal(err)
			}
			relays[0].Set(harness.Mute)
			err := insert("a")
			if kind := kindOf(err); replicated && err != nil || !replicated && kind != clickhouse.Unavailable {
				t.Errorf("got %v", err)
			}
			relays[0].Set(harness.Works)
			awaitHosts(t, c, true, true)
			if got := ask(t, c, p, "SELECT count() FROM person_distinct_id2"); got[0] != "[2]" {
				t.Errorf("%v rows, want 2", got)
			}
		})
	}
}
