package registrytest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// acknowledged is how many writes Crash waits for before it kills.
const acknowledged = 60

// WriteUntilKilled adds keys to a new project without end, and prints the id of each one on a line of out after the store
// has acknowledged it. It returns only when the store or out fails. It is what the child of Crash does.
func WriteUntilKilled(s registry.Store, out io.Writer) error {
	ctx := context.Background()
	var project int64
	_, err := s.Write(ctx, func(tx registry.Tx) (err error) {
		project, err = tx.InsertProject(ctx, registry.Project{Name: "crash", Timezone: "UTC", CreatedAt: at})
		return err
	})
	for i := 0; err == nil; i++ {
		id := fmt.Sprintf("key-%d", i)
		if _, err = s.Write(ctx, func(tx registry.Tx) error { return tx.InsertKey(ctx, newKey(project, id)) }); err == nil {
			_, err = fmt.Fprintln(out, id)
		}
	}
	return err
}

// Crash starts child, a process that runs WriteUntilKilled on place with its standard output as out, kills it without
// warning in the midst of its writes, and checks that everything it acknowledged is there, and that the store works on.
func Crash(t *testing.T, place Place, child *exec.Cmd) {
	t.Helper()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var told []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		told = append(told, lines.Text())
		if len(told) == acknowledged {
			if err := child.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := child.Wait(); err == nil || len(told) < acknowledged {
		t.Fatalf("the child ended by itself (%v) after %d writes; it said %q", err, len(told), told)
	}

	in := exam{t, place}
	s := open(in)
	changes := load(in, s, 0)
	kept := make(map[string]bool)
	for _, k := range changes.Projects[0].Keys {
		kept[k.ID] = true
	}
	for _, id := range told {
		if !kept[id] {
			t.Errorf("%s was acknowledged and is lost", id)
		}
	}
	if got := uint64(len(kept)) + 1; changes.Revision != got {
		t.Errorf("the revision is %d after %d writes", changes.Revision, got)
	}
	write(in, s, func(ctx context.Context, tx registry.Tx) error {
		return tx.InsertKey(ctx, newKey(changes.Projects[0].Project.ID, "after the crash"))
	})
}
