//go:build linux

package journal_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
)

// The test binary is also the child of the tests that kill, starve or lock out a process.
func TestMain(m *testing.M) {
	if dir := os.Getenv("JOURNAL_CHILD"); dir != "" {
		os.Exit(child(dir))
	}
	os.Exit(m.Run())
}

// child is what this binary does when a test starts it: open a journal and do the thing that JOURNAL_DO says.
func child(dir string) int {
	todo, arg, _ := strings.Cut(os.Getenv("JOURNAL_DO"), " ")
	if todo == "starve" {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 20, Max: unix.RLIM_INFINITY}); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	j, err := journal.Open(dir, journal.Options{MaxBytes: 512 << 20})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	switch todo {
	case "append":
		appendUntilKilled(j, arg)
	case "starve":
		return starve(j)
	}
	return 0
}

// appendUntilKilled prints the name of each entry that was acknowledged.
func appendUntilKilled(j *journal.Journal, run string) {
	var out sync.Mutex
	var wg sync.WaitGroup
	for a := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("%s-%d-%d", run, a, i)
				err := j.Append(context.Background(), entry(name+" "+incompressible(i, 200*(1+i%40))))
				out.Lock()
				if err != nil {
					fmt.Println("error", err)
				} else {
					fmt.Println("ok", name)
				}
				out.Unlock()
			}
		})
	}
	wg.Wait()
}

// starve appends while no file may grow beyond 1 MiB, then with room again.
func starve(j *journal.Journal) int {
	ctx := context.Background()
	acknowledged := 0
	failed := false
	for i := 0; !failed && i < 1000; i++ {
		err := j.Append(ctx, entry("e "+incompressible(i, 100_000)))
		switch {
		case err == nil:
			acknowledged++
		case !errors.Is(err, unix.EFBIG):
			fmt.Println(err)
			return 1
		default:
			failed = true
		}
	}
	// The next goes to another file, which has room.
	if err := j.Append(ctx, entry("e after")); err != nil {
		fmt.Println("after the first failure:", err)
		return 1
	}
	// Nothing has room.
	_ = unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 10, Max: unix.RLIM_INFINITY})
	for range 5 {
		if err := j.Append(ctx, entry("lost")); !errors.Is(err, unix.EFBIG) {
			fmt.Println("without room:", err)
			return 1
		}
	}
	_ = unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	if err := j.Append(ctx, entry("e again")); err != nil {
		fmt.Println("with room:", err)
		return 1
	}
	fmt.Println("acknowledged", acknowledged+2, failed)
	return 0
}

func childCommand(ctx context.Context, dir, todo string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), "JOURNAL_CHILD="+dir, "JOURNAL_DO="+todo)
	return cmd
}

func runChild(t *testing.T, dir, todo string) (string, error) {
	t.Helper()
	out, err := childCommand(t.Context(), dir, todo).CombinedOutput()
	return string(out), err
}

func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, journal.Options{})
	out, _ := runChild(t, dir, "open")
	if want := dir + ": it is in use by another process"; !strings.Contains(out, want) {
		t.Errorf("%q, want %q", out, want)
	}
}

func TestKilled(t *testing.T) {
	kills := 100
	if testing.Short() {
		kills = 5
	}
	dir := t.TempDir()
	total := 0
	for run := range kills {
		want := killAfter(t, dir, strconv.Itoa(run), time.Duration(1+run%30)*time.Millisecond)
		j := open(t, dir, journal.Options{})
		all := readAll(t, j, 0)
		seen := map[string]int{}
		for _, e := range all {
			name, _, _ := bytes.Cut(e.Data, []byte(" "))
			seen[string(name)]++
		}
		for _, name := range want {
			if seen[name] != 1 {
				t.Fatalf("run %d: %s was acknowledged and is there %d times", run, name, seen[name])
			}
		}
		for name, n := range seen {
			if n != 1 || !strings.HasPrefix(name, strconv.Itoa(run)+"-") {
				t.Fatalf("run %d: %s is there %d times", run, name, n)
			}
		}
		if j.Stats().Aside != 0 {
			t.Fatalf("run %d: a killed process left damage: %+v", run, j.Stats())
		}
		total += len(want)
		if len(all) > 0 {
			if err := j.Forget(t.Context(), all[len(all)-1].ID); err != nil {
				t.Fatal(err)
			}
		}
		_ = j.Close()
	}
	t.Logf("%d kills, %d acknowledged entries", kills, total)
	if total < kills {
		t.Errorf("only %d entries were acknowledged", total)
	}
}

// killAfter starts a child that appends, kills it some time after its first acknowledgement, and returns what it acknowledged.
func killAfter(t *testing.T, dir, run string, wait time.Duration) (acknowledged []string) {
	t.Helper()
	cmd := childCommand(t.Context(), dir, "append "+run)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var once atomic.Bool
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break // what has no end of line was cut off by the kill
		}
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "ok ")
		if !ok {
			t.Fatal(line)
		}
		acknowledged = append(acknowledged, name)
		if once.CompareAndSwap(false, true) {
			time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
		}
	}
	_ = cmd.Wait()
	return acknowledged
}

func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	out, err := runChild(t, dir, "starve")
	var n int
	var failed bool
	if _, scanErr := fmt.Sscanf(out, "acknowledged %d %t", &n, &failed); err != nil || scanErr != nil || !failed {
		t.Fatalf("%s (%v)", out, err)
	}
	j := open(t, dir, journal.Options{})
	got := readAll(t, j, 0)
	if len(got) != n {
		t.Errorf("%d entries, %d were acknowledged", len(got), n)
	}
	for _, e := range got {
		if !bytes.HasPrefix(e.Data, []byte("e ")) {
			t.Errorf("entry %d was refused and is there", e.ID)
		}
	}
	if s := j.Stats(); s.Aside != 0 {
		t.Errorf("a full disk left damage: %+v", s)
	}
}

// A small file system of its own, where the test may mount one: the real error, also for the folder and the position.
func TestNoSpace(t *testing.T) {
	mount := t.TempDir()
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) })
	j := open(t, mount+"/log", journal.Options{})
	t.Cleanup(func() { _ = j.Close() })
	for round := range 3 {
		var err error
		n := 0
		for ; err == nil; n++ {
			err = j.Append(t.Context(), entry(incompressible(n, 50_000)))
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
		all := readAll(t, j, 0)
		if len(all) != n-1 {
			t.Errorf("round %d: %d entries, %d were acknowledged", round, len(all), n-1)
		}
		if err := j.Forget(t.Context(), all[len(all)-1].ID); err != nil {
			t.Fatalf("Forget on a full disk: %v", err)
		}
		if s := j.Stats(); s.Entries != 0 || s.Bytes != 0 {
			t.Errorf("%+v", s)
		}
	}
}
