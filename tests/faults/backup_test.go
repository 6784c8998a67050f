package faults_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// backupRecord is a backup as the commands print it.
type backupRecord struct {
	Name     string
	Events   int64
	Waiting  int64
	Bytes    int64
	NewBytes int64 `json:"new_bytes"`
	Whole    bool
	Damage   string
}

func createBackup(t *testing.T, server *harness.Server, folder string) backupRecord {
	t.Helper()
	var made backupRecord
	server.MustCommand(t, &made, nil, "backup", "create", folder)
	return made
}

func listBackups(t *testing.T, server *harness.Server, folder string) []backupRecord {
	t.Helper()
	var list struct{ Backups []backupRecord }
	server.MustCommand(t, &list, nil, "backup", "list", "--verify", folder)
	return list.Backups
}

// TestBackupUnderLoad makes backups of a server that constantly takes in events and imports, and is killed during some of the backups. Existing
// backups are complete, and the last one has each event acknowledged before it exactly once.
func TestBackupUnderLoad(t *testing.T) {
	server, c := start(t)
	token := captureToken(t, server, c.Project)
	folder := filepath.Join(t.TempDir(), "backups")
	first := createBackup(t, server, folder)

	stop := make(chan struct{})
	senders := make([]*sender, 3)
	var all sync.WaitGroup
	for n := range senders {
		s := &sender{url: server.URL, token: token, name: fmt.Sprintf("s%d", n), acknowledged: map[string]bool{}, doubtful: map[string]bool{}}
		senders[n] = s
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(rand.IntN(20)) * time.Millisecond):
					s.send()
				}
			}
		})
	}
	all.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			line := fmt.Sprintf(`{"event":"imported","distinct_id":"i%d","timestamp":"2024-01-01T00:00:00Z","properties":{"n":%d}}`, n%7, n)
			_, _, _ = server.Command(strings.NewReader(line), "import", "--project", fmt.Sprint(c.Project), "-") // the server may be dead
		}
	})
	for range 4 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _, _ = server.Command(nil, "backup", "create", folder) // it is interrupted
		}()
		<-time.After(time.Duration(rand.IntN(400)) * time.Millisecond)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		<-done
		if err := server.Run(); err != nil {
			t.Fatal(err)
		}
		for _, b := range listBackups(t, server, folder) {
			if !b.Whole {
				t.Fatalf("after a kill there is %+v", b)
			}
		}
	}
	made := createBackup(t, server, folder)
	if made.NewBytes == 0 || made.Events <= first.Events {
		t.Errorf("the backup after the kills is %+v, the first was %+v", made, first)
	}
	close(stop)
	all.Wait()
	last := createBackup(t, server, folder)

	restored := harness.Start(t)
	restored.MustCommand(t, nil, nil, "backup", "restore", folder)
	copied := restored.Client(c.Project, c.Key)
	want := map[string]bool{}
	doubtful := map[string]bool{}
	for _, s := range senders {
		for id := range s.acknowledged {
			want[id] = true
		}
		for id := range s.doubtful {
			doubtful[id] = true
		}
	}
	if len(want) == 0 {
		t.Fatal("no event was acknowledged")
	}
	harness.Eventually(t, time.Minute, func() error {
		seen := map[string]int{}
		for _, row := range copied.Query(t, uncached("select toString(uuid) from events where event in ('seen', '$identify') and %d > 0 limit 50000")) {
			cells, _ := row.([]any)
			id, _ := cells[0].(string)
			seen[id]++
		}
		for id, n := range seen {
			if n != 1 || !want[id] && !doubtful[id] {
				t.Fatalf("the event %s is there %d times, sent: %t", id, n, want[id] || doubtful[id])
			}
		}
		for id := range want {
			if seen[id] == 0 {
				return fmt.Errorf("of %d events %d are there; %d waited in %s", len(want), len(seen), last.Waiting, last.Name)
			}
		}
		return nil
	})
	const numbers = "select event, count(), count(distinct person_id), count(distinct distinct_id) from events where %d > 0 group by event order by event"
	harness.Eventually(t, time.Minute, func() error { // the first server may still deliver
		if diff := cmp.Diff(c.Query(t, uncached(numbers)), copied.Query(t, uncached(numbers))); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	goesOn(t, restored, copied)
}

// uncached returns a query that is in no cache: with a different number each time.
func uncached(format string) string { return fmt.Sprintf(format, time.Now().UnixNano()) }

// goesOn checks that events can be captured.
func goesOn(t *testing.T, server *harness.Server, c *harness.Client) {
	t.Helper()
	s := &sender{url: server.URL, token: captureToken(t, server, c.Project), name: "new", acknowledged: map[string]bool{}, doubtful: map[string]bool{}}
	s.send()
	if len(s.acknowledged) == 0 {
		t.Fatal("an event is not taken after a restore")
	}
	harness.Eventually(t, time.Minute, func() error {
		for id := range s.acknowledged {
			if rows := c.Query(t, uncached("select uuid from events where uuid = '"+id+"' and %d > 0")); len(rows) != 1 {
				return fmt.Errorf("the event %s is not there", id)
			}
		}
		return nil
	})
}

// TestBackupDamage changes a byte in each kind of file of a backup: that is detected, and a restore is refused before it changes anything.
func TestBackupDamage(t *testing.T) {
	server, c := start(t)
	folder := filepath.Join(t.TempDir(), "backups")
	made := createBackup(t, server, folder)
	var file struct {
		Manifest struct {
			Files []struct{ Path, SHA256 string }
		}
	}
	manifest := filepath.Join(folder, made.Name+".json")
	text, err := os.ReadFile(manifest)
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]string{"manifest": manifest}
	for _, kind := range []string{"registry/registry.db", "journal/delivered", "engine/events/", "engine/person/", "engine/person_distinct_id2/"} {
		for _, f := range file.Manifest.Files {
			if strings.HasPrefix(f.Path, kind) && (!strings.HasSuffix(kind, "/") || strings.HasSuffix(f.Path, "data.bin")) {
				targets[f.Path] = filepath.Join(folder, "objects", f.SHA256[:2], f.SHA256)
			}
		}
	}
	if len(targets) < 6 {
		t.Fatalf("the backup has only %v", targets)
	}
	fresh := harness.Start(t)
	for name, path := range targets {
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bad := append([]byte{}, good...)
		bad[len(bad)/2] ^= 4
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"list", "--verify"}, {"restore"}} {
			_, stderr, err := fresh.Command(nil, append(append([]string{"backup"}, args...), folder)...)
			if err == nil || !strings.Contains(stderr, name) || !strings.Contains(stderr, "damaged") {
				t.Errorf("%s with damage in %s: %v, %s", args[0], name, err, stderr)
			}
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
		empty(t, fresh)
	}
	newer := strings.Replace(string(text), `"format":1`, `"format":2`, 1)
	if err := os.WriteFile(manifest, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, err := fresh.Command(nil, "backup", "restore", folder); err == nil || !strings.Contains(stderr, "damaged") {
		t.Errorf("a manifest that was changed by hand: %v, %s", err, stderr)
	}
	if err := os.WriteFile(manifest, text, 0o600); err != nil {
		t.Fatal(err)
	}
	fresh.MustCommand(t, nil, nil, "backup", "restore", folder)
	copied := fresh.Client(c.Project, c.Key)
	copied.Shows(t, count, []any{100.0})
	if _, stderr, err := fresh.Command(nil, "backup", "restore", folder); err == nil || !strings.Contains(stderr, "this server has 1 project") {
		t.Errorf("a restore into a server with projects: %v, %s", err, stderr)
	}
	copied.Shows(t, count, []any{100.0})
	brokenOff(t, fresh, copied, folder, made.Name)
}

func empty(t *testing.T, server *harness.Server) {
	t.Helper()
	var list struct{ Projects []any }
	server.MustCommand(t, &list, nil, "project", "list")
	if len(list.Projects) > 0 {
		t.Fatalf("a refused restore made %v", list.Projects)
	}
}

// brokenOff starts a server with a restore that was interrupted near its end: it says so, creates no projects, and continues with the same command.
// Events captured since are kept, and none is duplicated.
func brokenOff(t *testing.T, server *harness.Server, c *harness.Client, folder, name string) {
	t.Helper()
	goesOn(t, server, c)
	const everything = count + " where %d > 0"
	before := c.Query(t, uncached(everything))
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	marker := filepath.Join(server.Folder, "data", "restore.json")
	if err := os.WriteFile(marker, fmt.Appendf(nil, `{"folder":%q,"name":%q,"tables":true}`, folder, name), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := server.Run(); err != nil {
		t.Fatal(err)
	}
	const say = "this server has an interrupted restore. To resume it: caddy analytics backup restore --backup "
	if log := server.Log(); !strings.Contains(log, say+name) {
		t.Errorf("the log does not tell of an interrupted restore:\n%s", log)
	}
	if _, stderr, err := server.Command(nil, "project", "create", "--name", "no"); err == nil || !strings.Contains(stderr, say) {
		t.Errorf("a project is made: %v, %s", err, stderr)
	}
	server.MustCommand(t, nil, nil, "backup", "restore", "--backup", name, folder)
	c.Shows(t, uncached(everything), toRow(before))
	if _, err := os.Stat(marker); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the restore is still noted: %v", err)
	}
	server.MustCommand(t, nil, nil, "project", "create", "--name", "yes")
}

func toRow(rows []any) []any {
	row, _ := rows[0].([]any)
	return row
}

// TestRestoreKilled repeatedly kills a server while it restores: the same command completes the restore.
func TestRestoreKilled(t *testing.T) {
	server, c := start(t)
	folder := filepath.Join(t.TempDir(), "backups")
	createBackup(t, server, folder)
	fresh := harness.Start(t)
	for range 4 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _, _ = fresh.Command(nil, "backup", "restore", folder)
		}()
		<-time.After(time.Duration(100+rand.IntN(500)) * time.Millisecond)
		if err := fresh.Kill(); err != nil {
			t.Fatal(err)
		}
		<-done
		if err := fresh.Run(); err != nil {
			t.Fatal(err)
		}
	}
	if _, stderr, err := fresh.Command(nil, "backup", "restore", folder); err != nil && !strings.Contains(stderr, "this server has 1 project") {
		t.Fatalf("after the kills: %v, %s", err, stderr)
	}
	fresh.Client(c.Project, c.Key).Shows(t, count, []any{100.0})
}

// TestBackupFullDisk makes a backup without enough disk space: the error says so, and nothing is left behind.
func TestBackupFullDisk(t *testing.T) {
	mount := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(mount, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", mount).CombinedOutput(); err != nil {
		t.Skipf("no disk can be made here: %v, %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", mount).Run() })
	server, c := start(t)
	_, stderr, err := server.Command(nil, "backup", "create", filepath.Join(mount, "backups"))
	if err == nil || !strings.Contains(stderr, "full") && !strings.Contains(stderr, "no space left on device") {
		t.Errorf("a backup on a full disk: %v, %s", err, stderr)
	}
	err = filepath.WalkDir(mount, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "lock" {
			t.Errorf("it left %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if shadow, err := os.ReadDir(filepath.Join(server.Folder, "data", "engine", "clickhouse", "shadow", "backup")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("frozen parts are left: %v, %v", shadow, err)
	}
	if answer := c.HogQL(t, count); answer.Status != http.StatusOK {
		t.Errorf("a query after it: %d", answer.Status)
	}
}
