package imports

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
)

// TestQueuedReadsChanges: folders that have not changed are not read again, and what another service or a person does in one is seen at once.
func TestQueuedReadsChanges(t *testing.T) {
	const folders, ended = 50, 50
	s := &Service{config: Config{Folder: t.TempDir(), Logger: zap.NewNop()}}
	other := &Service{config: s.config}
	for project := range int64(folders) {
		if err := os.Mkdir(s.folder(project), 0o700); err != nil {
			t.Fatal(err)
		}
		for range ended {
			if err := os.WriteFile(s.file(project, uuid.NewString(), recordFile), []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	// settle makes it look as if nothing has changed for a while.
	long := time.Now().Add(-time.Hour)
	settle := func() {
		t.Helper()
		long = long.Add(time.Minute)
		for project := range int64(folders) {
			if err := os.Chtimes(s.folder(project), long, long); err != nil {
				t.Fatal(err)
			}
		}
	}
	queued := func(when string, want int) []*Import {
		t.Helper()
		all, err := s.queued()
		if err != nil || len(all) != want {
			t.Errorf("%s: %d imports, want %d: %v", when, len(all), want, err)
		}
		return all
	}
	add := func(project int64, status Status) *Import {
		t.Helper()
		one := &Import{Request: Request{Project: project}, ID: uuid.NewString(), Status: status}
		if err := os.WriteFile(other.file(project, one.ID, dataFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := other.save(one); err != nil {
			t.Fatal(err)
		}
		return one
	}
	settle()
	queued("at first", 0)
	if n := testing.AllocsPerRun(5, func() { queued("later", 0) }); n > 12*folders {
		t.Errorf("it makes %v allocations for %d folders, which have %d files each", n, folders, ended)
	}
	first := add(7, Waiting)
	queued("after a write", 1)
	add(7, Completed)
	second := add(8, Waiting)
	queued("after more at the same time", 2)
	settle()
	queued("and then", 2)[0].Status = Completed // which is only a copy
	queued("after a change of what it returned", 2)
	if err := other.finish(first, Completed, ""); err != nil {
		t.Fatal(err)
	}
	queued("after the end of one", 1)
	if err := os.RemoveAll(s.folder(8)); err != nil {
		t.Fatal(err)
	}
	queued("without the folder", 0)
	if err := os.Mkdir(s.folder(8), 0o700); err != nil {
		t.Fatal(err)
	}
	damaged := second.ID
	for _, file := range []string{dataFile, recordFile} {
		if err := os.WriteFile(s.file(8, damaged, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	settle()
	queued("with a damaged record", 0)
	if err := os.WriteFile(filepath.Join(s.folder(8), damaged+recordFile), fmt.Appendf(nil, `{"id":%q,"project":8,"status":"waiting"}`, damaged), 0o600); err != nil {
		t.Fatal(err)
	}
	queued("mended", 1)
}
