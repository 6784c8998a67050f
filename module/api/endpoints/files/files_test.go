package files_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints/files"
	"github.com/caddy-analytics/caddy-analytics/module/api/references"
	"github.com/caddy-analytics/caddy-analytics/module/endpointfile"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// TestBusyProject: while all places of a project are taken, or its queue is full, a plan fails in the time that one file waits, and the error is not a
// mistake in the files.
func TestBusyProject(t *testing.T) {
	reg := sqlitetest.Open(t, registry.Options{})
	project, err := reg.CreateProject(t.Context(), registry.NewProject{Name: "p", Timezone: "UTC"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	wh := warehousetest.Nowhere(t, schema.NativeLayout())
	var sources []endpointfile.Source
	for n := range 20 {
		sources = append(sources, endpointfile.Source{Path: fmt.Sprintf("%d.yaml", n), Text: fmt.Sprintf("name: e%d\nquery: select %d as n\n", n, n)})
	}
	given, err := endpointfile.ParseAll(sources)
	if err != nil {
		t.Fatal(err)
	}
	for name, queue := range map[string]int{"no place becomes free": 10, "the queue is full": 0} {
		t.Run(name, func(t *testing.T) {
			exec := &execution.Executor{
				Compiler: &execution.Compiler{Shards: warehouse.Only(wh), Registry: reg},
				Places:   admission.New(admission.Limits{Places: 2, Project: 1, Queue: queue}), Limits: execution.NewLimiter(registry.Rate{}),
			}
			exec.Limits.Wait = 50 * time.Millisecond
			place, err := exec.Places.Enter(t.Context(), admission.Request{Project: project.ID})
			if err != nil {
				t.Fatal(err)
			}
			defer place.Leave()
			of := files.Files{Executor: exec, Registry: reg, References: new(references.Index)}
			_, err = of.Plan(t.Context(), project.ID, given, false, time.Now())
			if err == nil || !files.IsPassing(err) || strings.Count(err.Error(), ".yaml") != 1 {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
