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

// WriteUntilKilled puts records without end, each with a log entry, and prints the id of each one on a line of out after the store has acknowledged it. It
// returns only if the store or out fails. The child of Crash runs it.
func WriteUntilKilled(s registry.Store, out io.Writer) error {
	ctx := context.Background()
	_, err := s.Write(ctx, &registry.Write{Put: []registry.Record{rec(1, "", `{"name":"crash"}`)}})
	for i := 0; err == nil; i++ {
		id := fmt.Sprintf("key-%d", i)
		w := &registry.Write{Put: []registry.Record{rec(1, id, `{}`, "id "+id)}, Append: []registry.Entry{entry(id)}}
		if _, err = s.Write(ctx, w); err == nil {
			_, err = fmt.Fprintln(out, id)
		}
	}
	return err
}

// Crash starts child, a process that runs WriteUntilKilled on place with its standard output as out, kills it without warning in the midst of its writes, and
// checks that everything it acknowledged is there, and that the store still works.
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
	kept, logged := make(map[string]bool), make(map[string]bool)
	for _, r := range changes.Records {
		kept[r.ID] = true
	}
	for _, e := range entriesOf(in, s, 1, "log") {
		logged[e.ID] = true
	}
	for _, id := range told {
		if !kept[id] || !logged[id] {
			t.Errorf("%s was acknowledged and is lost: record %t, entry %t", id, kept[id], logged[id])
		}
	}
	if len(kept) != len(logged)+1 || changes.Revision != uint64(len(kept)) {
		t.Errorf("the revision is %d after %d records and %d entries", changes.Revision, len(kept), len(logged))
	}
	put(in, s, rec(1, "after the crash", `1`))
}
