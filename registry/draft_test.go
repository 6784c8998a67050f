package registry

import (
	"fmt"
	"testing"
)

// large is a snapshot of many projects with ten keys each.
func large(projects int) *Snapshot {
	d := newDraft(&Snapshot{})
	for id := range int64(projects) {
		show(d, &Project{ID: id + 1, Name: "p", Timezone: "UTC"})
		for i := range 10 {
			k := numberedKey(id+1, i)
			show(d, &k)
		}
	}
	return d.finish(1)
}

func show(d *draft, all ...entity) {
	for _, e := range all {
		if err := d.put(e); err != nil {
			panic(err)
		}
	}
}

func numberedKey(project int64, i int) Key {
	id := fmt.Sprintf("%d-%d", project, i)
	return Key{ID: id, Project: project, Hash: HashKey(id)}
}

func TestDraftLeavesTheOlderSnapshotAlone(t *testing.T) {
	before := large(100)
	d := newDraft(before)
	k := numberedKey(7, 3)
	oldHash := k.Hash
	k.Hash = HashKey("rolled")
	show(d, &k, &endpointRecord{Endpoint: &Endpoint{ID: "e", Project: 7, Name: "e", CurrentVersion: 1}},
		&versionRecord{project: 7, endpoint: "e", Version: Version{Number: 1}}, &Variable{ID: "v", Project: 7, CodeName: "v"},
		&property{project: 7, PropertyDefinition: PropertyDefinition{Scope: EventProperty, Name: "x", Type: PropertyNumeric}})
	after := d.finish(2)

	for _, tt := range []struct {
		name     string
		s        *Snapshot
		old, new bool
	}{{"before", before, true, false}, {"after", after, false, true}} {
		got := []bool{
			tt.s.KeyByHash(oldHash) != nil, tt.s.KeyByHash(k.Hash) != nil, tt.s.Endpoint(7, "e") != nil, len(tt.s.Endpoints(7)) == 1,
			tt.s.VariableByCode(7, "v") != nil, len(tt.s.Variables(7)) == 1, len(tt.s.PropertyDefinitions(7)) == 1,
		}
		for i, want := range []bool{tt.old, tt.new, tt.new, tt.new, tt.new, tt.new, tt.new} {
			if got[i] != want {
				t.Errorf("%s: check %d is %t, want %t", tt.name, i, got[i], want)
			}
		}
	}
	if before.project(8) != after.project(8) {
		t.Error("a project that was not touched was copied")
	}
}

func BenchmarkDraft(b *testing.B) {
	for _, projects := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprintf("a key in %d projects", projects), func(b *testing.B) {
			s := large(projects)
			k := numberedKey(7, 3)
			b.ReportAllocs()
			for b.Loop() {
				d := newDraft(s)
				show(d, &k)
				d.finish(2)
			}
		})
	}
}
