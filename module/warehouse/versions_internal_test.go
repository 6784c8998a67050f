package warehouse

import (
	"bytes"
	"encoding/gob"
	"errors"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// saved returns the versions as the next process reads them.
func saved(t *testing.T, c *changes) *Versions {
	t.Helper()
	var file bytes.Buffer
	if err := gob.NewEncoder(&file).Encode(c.save()); err != nil {
		t.Fatal(err)
	}
	v := new(Versions)
	if err := gob.NewDecoder(&file).Decode(v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestResumedVersions: the next process has the versions of this one, and changes them as this one would. A project whose last write is in doubt has none.
func TestResumedVersions(t *testing.T) {
	c := newChanges()
	write(c, noon)(nil)
	write(c, noon.Add(48*time.Hour))(nil)
	c.begin(2, &change{table: "person"})(nil)
	c.begin(3, &change{table: "person"})(nil)
	doubtful := c.version(3, ofPersons, time.Time{}, time.Time{})
	c.begin(3, &change{table: "person"})(errors.New("the connection broke"))
	next := newChanges()
	if !next.resume(saved(t, c)) {
		t.Fatal("resume() = false")
	}
	for project := int64(1); project < 5; project++ {
		for day := range time.Duration(4) {
			from := noon.Add(day * 24 * time.Hour)
			for name, reads := range map[string]func(*changes) uint64{
				"events":  func(c *changes) uint64 { return c.version(project, ofEvents, from, from.Add(time.Hour)) },
				"persons": func(c *changes) uint64 { return c.version(project, ofPersons, from, from.Add(time.Hour)) },
			} {
				before, after := reads(c), reads(next)
				if project == 3 && (after == 0 || after <= doubtful) {
					t.Errorf("%s of a project with a write in doubt have the version %d, %d before", name, after, doubtful)
				}
				if project < 3 && before != after {
					t.Errorf("%s of project %d on day %d have the version %d, %d before", name, project, day, after, before)
				}
			}
		}
	}
	most := c.last
	write(next, noon)(nil)
	if got := next.version(1, ofEvents, noon, noon.Add(time.Hour)); got <= most {
		t.Errorf("a write has the version %d, which an earlier process has given: the last was %d", got, most)
	}
}

// TestNoResume: versions are not taken over while others are in use, and not saved while a change is in doubt.
func TestNoResume(t *testing.T) {
	c := newChanges()
	write(c, noon)(nil)
	v := saved(t, c)
	for name, before := range map[string]func(*changes){
		"a write":              func(c *changes) { write(c, noon)(nil) },
		"a write under way":    func(c *changes) { write(c, noon) },
		"a change of all":      func(c *changes) { c.beginAll()(nil) },
		"one under way":        func(c *changes) { c.beginAll() },
		"a project that ended": func(c *changes) { write(c, noon)(nil); c.forget(1) },
	} {
		other := newChanges()
		before(other)
		if other.resume(v) {
			t.Errorf("versions are taken over after %s", name)
		}
	}
	c.begin(1, &change{table: physical.Events})
	if v := c.save(); len(v.Projects) > 0 {
		t.Error("the versions of a project are saved while it is written to")
	}
	c.beginAll()
	if c.save() != nil {
		t.Error("versions are saved during a change of all projects")
	}
}
