package clickhouse_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/physical"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// replica is a fake host whose tables are replicas.
type replica struct {
	fakeHost

	mu      sync.Mutex
	peers   map[string]string // the replicas of each table: own, active, or away
	missing string            // the replica whose rows it does not get
	refuses bool              // it does not let us wait
	shard   string            // the shard of its tables
	lacks   string            // a table that it lacks
	delay   int               // absolute_delay
	queued  int               // for how many seconds it has been waiting for active replicas
	synced  func(table string)
}

func newReplica(peers map[string]string) *replica {
	r := &replica{peers: peers}
	r.answer = r.answerSQL
	return r
}

func (r *replica) change(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}

func (r *replica) answerSQL(w http.ResponseWriter, req *http.Request, sql string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case strings.HasPrefix(sql, "SELECT table, name, multiIf"):
		var rows [][]string
		for _, table := range physical.Names() {
			for name, is := range r.peers {
				rows = append(rows, []string{table, name, is})
			}
		}
		send(w, nativeRows([]string{"table", "name", "is"}, rows...))
	case strings.HasPrefix(sql, "SELECT name, engine"):
		r.tables(w, `["name", "engine", "id"]`, func(name string) string { return fmt.Sprintf(`[%q, "ReplicatedMergeTree", %q]`, name, name) })
	case strings.HasPrefix(sql, "SELECT table, zookeeper_path"):
		r.tables(w, `["table", "zookeeper_path", "x"]`, func(name string) string { return fmt.Sprintf(`[%q, "/%s%s", ""]`, name, r.shard, name) })
	case strings.HasPrefix(sql, "SELECT toInt64(max(absolute_delay))"):
		away := 0
		for _, is := range r.peers {
			if is == "away" {
				away = 1
			}
		}
		numbers(w, r.delay, away)
	case strings.Contains(sql, "FROM system.replication_queue"):
		numbers(w, r.queued)
	case strings.HasPrefix(sql, "SYSTEM SYNC REPLICA"):
		r.sync(w, req, sql)
	default:
		numbers(w, 1)
	}
}

func (r *replica) tables(w http.ResponseWriter, header string, row func(name string) string) {
	send(w, []byte(header+"\n[\"String\", \"String\", \"String\"]\n"))
	for _, name := range physical.Names() {
		if name != r.lacks {
			send(w, []byte(row(name)+"\n"))
		}
	}
}

// sync waits as ClickHouse does.
func (r *replica) sync(w http.ResponseWriter, req *http.Request, sql string) {
	table := strings.Split(sql, "`")[1]
	if r.synced != nil {
		r.synced(table)
	}
	_, from, some := strings.Cut(sql, "FROM ")
	switch {
	case r.refuses:
		refuse(w, 497, "default: Not enough privileges. (ACCESS_DENIED)")
	case r.missing != "" && (!some || strings.Contains(from, "'"+r.missing+"'")):
		seconds, _ := strconv.Atoi(req.URL.Query().Get("receive_timeout")) // zero without it
		r.mu.Unlock()
		time.Sleep(time.Duration(seconds) * time.Second)
		r.mu.Lock()
		refuse(w, 159, "SYNC REPLICA: command timed out. See the 'receive_timeout' setting. (TIMEOUT_EXCEEDED)")
	}
}

// syncs returns the statements with which a host caught up.
func (r *replica) syncs() []string {
	return slices.DeleteFunc(r.statements(), func(sql string) bool { return !strings.HasPrefix(sql, "SYSTEM ") })
}

// isUp checks which hosts are reachable, and that the number of moved queries is as wanted.
func isUp(t *testing.T, c *clickhouse.Client, moved uint64, want ...bool) {
	t.Helper()
	var got []bool
	for _, h := range c.Hosts() {
		got = append(got, h.Reachable)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reachable hosts (-want +got):\n%s", diff)
	}
	if c.Moved() != moved {
		t.Errorf("%d queries were moved, want %d", c.Moved(), moved)
	}
}

// catchUp catches up with two tables, and returns on which host, and how long that took.
func catchUp(t *testing.T, c *clickhouse.Client, wantWhole bool) (host string, took time.Duration) {
	t.Helper()
	began := time.Now()
	host, whole, err := c.CatchUp(t.Context(), "person", "groups", "nothing")
	if err != nil || whole != wantWhole {
		t.Errorf("CatchUp: whole is %t, want %t, %v", whole, wantWhole, err)
	}
	return host, time.Since(began)
}

// TestCatchUpWithoutTheDead: a host whose only other replica is dead does not wait for its rows, and stays in use.
func TestCatchUpWithoutTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newReplica(nil), newReplica(map[string]string{"a": "away", "b": "own"})
		second.missing = "a"
		c, logs := fakeHosts(t, clickhouse.Config{}, &first.fakeHost, &second.fakeHost)
		c.SetReplicatedTables()
		first.set(harness.Refuses)
		for range 3 {
			if host, took := catchUp(t, c, false); host != "host1:8123" || took != 0 {
				t.Errorf("caught up on %s after %s", host, took)
			}
		}
		want := []string{"SYSTEM SYNC REPLICA `person` LIGHTWEIGHT FROM 'b'", "SYSTEM SYNC REPLICA `groups` LIGHTWEIGHT FROM 'b'"}
		if diff := cmp.Diff(slices.Repeat(want, 3), second.syncs()); diff != "" {
			t.Errorf("statements (-want +got):\n%s", diff)
		}
		isUp(t, c, 1, false, true)
		said := 0
		for _, line := range atLeastInfo(logs) {
			if strings.Contains(line, "replicas of ClickHouse are away") {
				said++
			}
		}
		if said != 1 {
			t.Errorf("the log says %q", atLeastInfo(logs))
		}
	})
}

// TestCatchUpTakesTooLong: rows of a replica that is away are waited for once if another replica may have them; rows of an active replica, each time.
// The waiting host stays in use.
func TestCatchUpTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newReplica(map[string]string{"a": "active", "b": "own", "c": "active"})
		first.missing = "a"
		c, _ := fakeHosts(t, clickhouse.Config{}, &first.fakeHost, &newReplica(nil).fakeHost)
		c.SetReplicatedTables()
		wake(t, c)
		if _, _, err := c.CatchUp(t.Context(), "person", "groups"); kindOf(err) != clickhouse.Unavailable || !strings.Contains(err.Error(), "behind") {
			t.Errorf("behind a replica that is there: %v", err)
		}
		isUp(t, c, 0, true, true)
		first.change(func() { first.peers["a"] = "away" })
		if _, took := catchUp(t, c, false); took < 30*time.Second || took > 32*time.Second {
			t.Errorf("the first time after it went away took %s", took)
		}
		if _, took := catchUp(t, c, false); took != 0 {
			t.Errorf("the second time took %s", took)
		}
		first.change(func() { first.peers["a"], first.missing = "active", "" })
		if _, took := catchUp(t, c, true); took != 0 {
			t.Errorf("after it is back it took %s", took)
		}
		const all, without = "SYSTEM SYNC REPLICA `groups` LIGHTWEIGHT", "SYSTEM SYNC REPLICA `groups` LIGHTWEIGHT FROM "
		var got []string
		for _, sql := range first.syncs() {
			if strings.Contains(sql, "groups") {
				got = append(got, sql)
			}
		}
		if len(got) != 4 || got[0] != all || got[1] != all || !strings.HasPrefix(got[2], without) || strings.Contains(got[2], "'a'") || got[3] != all {
			t.Errorf("statements %q", got)
		}
		isUp(t, c, 0, true, true)
	})
}

// TestCatchUpBehindASilentHost: rows of a host that does not answer us are not waited for again and again until ZooKeeper knows that it is away.
func TestCatchUpBehindASilentHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newReplica(map[string]string{"a": "own", "b": "active"}), newReplica(map[string]string{"a": "active", "b": "own"})
		c, _ := fakeHosts(t, clickhouse.Config{}, &first.fakeHost, &second.fakeHost)
		c.SetReplicatedTables()
		catchUp(t, c, true)
		first.set(harness.Silent)
		second.missing = "a"
		if host, took := catchUp(t, c, false); host != "host1:8123" || took > 35*time.Second {
			t.Errorf("caught up on %s after %s", host, took)
		}
		isUp(t, c, 1, false, true)
	})
}

// TestCatchUpForbidden: a host that does not let us wait stays in use, and the log says once what it lacks.
func TestCatchUpForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newReplica(map[string]string{"a": "own", "b": "active"})
		first.refuses = true
		c, logs := fakeHosts(t, clickhouse.Config{}, &first.fakeHost, &newReplica(nil).fakeHost)
		c.SetReplicatedTables()
		wake(t, c)
		for range 2 {
			catchUp(t, c, true)
			isUp(t, c, 0, true, true)
		}
		if lines := atLeastInfo(logs); len(lines) != 1 || !strings.Contains(lines[0], "SYSTEM SYNC REPLICA on the tables") {
			t.Errorf("the log says %q", lines)
		}
	})
}

// TestCatchUpMoves: if the host dies in the middle, the next one catches up with all tables.
func TestCatchUpMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := map[string]string{"a": "active", "b": "active"}
		first, second := newReplica(peers), newReplica(peers)
		c, _ := fakeHosts(t, clickhouse.Config{}, &first.fakeHost, &second.fakeHost)
		c.SetReplicatedTables()
		wake(t, c)
		first.synced = func(table string) {
			if table == "groups" {
				first.set(harness.Silent)
			}
		}
		if host, _ := catchUp(t, c, true); host != "host1:8123" {
			t.Errorf("caught up on %s", host)
		}
		want := []string{"SYSTEM SYNC REPLICA `person` LIGHTWEIGHT", "SYSTEM SYNC REPLICA `groups` LIGHTWEIGHT"}
		if diff := cmp.Diff(want, second.syncs()); diff != "" {
			t.Errorf("statements of the second host (-want +got):\n%s", diff)
		}
	})
}

// TestTakenBackBehindTheDead: a host that is behind is left out, unless it lacks only rows of replicas that are away.
func TestTakenBackBehindTheDead(t *testing.T) {
	for _, tt := range []struct {
		name          string
		peer          string
		delay, queued int
		want          bool
	}{
		{"behind a replica that is away", "away", 1000, 0, true},
		{"behind one that is away and one that is there", "away", 1000, 100, false},
		{"behind a replica that is there", "active", 1000, 0, false},
		{"not behind", "active", 1, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := newReplica(nil), newReplica(map[string]string{"a": tt.peer, "b": "own"})
				second.delay, second.queued = tt.delay, tt.queued
				c, _ := fakeHosts(t, clickhouse.Config{}, &first.fakeHost, &second.fakeHost)
				c.SetReplicatedTables()
				wake(t, c)
				second.set(harness.Refuses)
				c.LookAround(t.Context())
				isUp(t, c, 0, true, false)
				second.set(harness.Works)
				time.Sleep(time.Minute)
				isUp(t, c, 0, true, tt.want)
			})
		})
	}
}

// TestOwnDeadline: the end of the caller's time says nothing about a host.
func TestOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &fakeHost{answer: func(w http.ResponseWriter, r *http.Request, sql string) {
			if strings.HasPrefix(sql, "CREATE ") {
				<-r.Context().Done()
				return
			}
			numbers(w, 1)
		}}
		c, _ := fakeHosts(t, clickhouse.Config{}, slow, &newReplica(nil).fakeHost)
		wake(t, c)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, &clickhouse.Error{Kind: clickhouse.Unavailable, Message: "too late"})
		defer cancel()
		if err := c.Exec(ctx, "CREATE TABLE t (n UInt8) ENGINE = Memory"); err == nil {
			t.Error("the statement succeeded")
		}
		isUp(t, c, 0, true, true)
	})
}

// TestHostsOfACluster: a host of another shard is refused, as without a cluster, and one that lacks a table is left out until it has it.
func TestHostsOfACluster(t *testing.T) {
	for _, cluster := range []string{"main", ""} {
		synctest.Test(t, func(t *testing.T) {
			second := newReplica(nil)
			c, _ := fakeHosts(t, clickhouse.Config{Cluster: cluster}, &newReplica(nil).fakeHost, &second.fakeHost)
			wake(t, c)
			second.change(func() { second.shard = "2/" })
			want := "the host host1:8123 is of another shard: the replicas of its table events are at /2/events in ZooKeeper, those of the first host at /events. " +
				"Several hosts must have the same rows: see docs/clickhouse-hosts.md"
			if err := c.CheckTables(t.Context()); err == nil || err.Error() != want {
				t.Errorf("with the cluster %q: got %v, want %s", cluster, err, want)
			}
			second.change(func() { second.shard, second.lacks = "", "groups" })
			err := c.CheckTables(t.Context())
			if cluster == "" {
				if err == nil || !strings.Contains(err.Error(), "has no table groups") {
					t.Errorf("without a cluster: got %v", err)
				}
				return
			}
			if err != nil {
				t.Error(err)
			}
			isUp(t, c, 0, true, false)
			second.change(func() { second.lacks = "" })
			time.Sleep(time.Minute)
			isUp(t, c, 0, true, true)
		})
	}
}

// TestDefineWithoutTheAway: the first statement waits for a server of the cluster that is away, later ones hardly do. The host that was asked stays
// in use.
func TestDefineWithoutTheAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &fakeHost{answer: func(w http.ResponseWriter, r *http.Request, sql string) {
			if seconds, _ := strconv.Atoi(r.URL.Query().Get("distributed_ddl_task_timeout")); strings.HasPrefix(sql, "CREATE ") {
				time.Sleep(time.Duration(seconds) * time.Second)
				return
			}
			numbers(w, 1)
		}}
		c, _ := fakeHosts(t, clickhouse.Config{Cluster: "main"}, first, &newReplica(nil).fakeHost)
		wake(t, c)
		const tables = 9
		began := time.Now()
		for range tables {
			if err := c.Define(t.Context(), "CREATE TABLE t ON CLUSTER main (n UInt8) ENGINE = ReplicatedMergeTree ORDER BY n"); err != nil {
				t.Error(err)
			}
		}
		if took, most := time.Since(began), 30*time.Second+(tables-1)*5*time.Second; took != most {
			t.Errorf("%d tables took %s, want %s", tables, took, most)
		}
		isUp(t, c, 0, true, true)
	})
}

// TestReplicaStatements: today's servers can parse the queries about replicas. The embedded engine parses the statement before it refuses to wait.
func TestReplicaStatements(t *testing.T) {
	c := client(t)
	for _, from := range [][]string{nil, {"a"}, {`it's`, "b"}} {
		sync, others := c.AskForReplicas(t.Context(), "events", from...)
		if e := clickhouse.Classify(sync); e.Name != "access_denied" {
			t.Errorf("from %q: %v (%s)", from, e, e.Reason())
		}
		if others != nil {
			t.Error(others)
		}
	}
	if e := clickhouse.Classify(c.Exec(t.Context(), "SYSTEM SYNC REPLICA events LIGHTWEIGHT FROM a")); e.Name != "syntax_error" {
		t.Errorf("a statement that can't be read: %v", e)
	}
}
