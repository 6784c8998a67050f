// Package registrytest tests any registry.Store: what it does with records and logs, and that a registry on it keeps all that a project has.
package registrytest

import (
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Place is an empty home for one store. Each call opens a store on the same data, which the caller closes.
type Place func(t *testing.T) registry.Store

// exam is a test of the stores at one place.
type exam struct {
	*testing.T

	place Place
}

// sub runs a part of the test under a name of its own.
func (t exam) sub(name string, run func(exam)) {
	t.Run(name, func(inner *testing.T) { run(exam{inner, t.place}) })
}

// Run tests the stores that open on the places made by newPlace.
func Run(t *testing.T, newPlace func(t *testing.T) Place) {
	t.Helper()
	tests := []struct {
		name string
		run  func(t exam)
	}{
		{"an empty store", testEmpty},
		{"records", testRecords},
		{"unique keys", testUniqueKeys},
		{"expectations", testExpectations},
		{"expectations about what was forgotten", testExpectationsForgotten},
		{"a write that fails leaves nothing", testRollback},
		{"a write that puts nothing has no revision", testNoChange},
		{"load since a revision", testLoadSince},
		{"a store that was restored is read whole", testRestored},
		{"a store opened again has everything", testReopen},
		{"writers at the same time", testConcurrentWriters},
		{"a reader sees one moment", testConsistentLoad},
		{"a cancelled write leaves nothing", testCancelled},
		{"a store tells of another's writes", testWatch},
		{"entries of a log", testEntries},
		{"entries that take the place of others", testMovedEntries},
		{"forgotten entries", testForgotten},
		{"cutting a log", testBounds},
		{"locks", testLocks},
		{"locks under contention", testLocksContended},
		{"what is kept", testKept},

		{"projects", testProjects},
		{"what belongs to no project", testUnknownProject},
		{"things that are not there", testMissing},
		{"keys", testKeys},
		{"key conflicts", testKeyConflicts},
		{"use of keys", testKeyUsed},
		{"users", testUsers},
		{"secrets for tokens", testTokenSecrets},
		{"capture tokens", testCaptureTokens},
		{"endpoints", testEndpoints},
		{"tables of endpoints", testTables},
		{"endpoint conflicts", testEndpointConflicts},
		{"executions of endpoints", testExecuted},
		{"uses that earlier versions wrote", testUsesInRecords},
		{"uses of what is gone for good", testUsesForgotten},
		{"variables", testVariables},
		{"insights", testInsights},
		{"dashboards and their tiles", testDashboards},
		{"tiles that are copied and moved", testTiles},
		{"activities", testActivities},
		{"views of insights", testViews},
		{"properties", testProperties},
		{"values of properties", testPropertyValues},
		{"probes for values", testValuesProbes},
		{"group types", testGroupTypes},
		{"cohorts", testCohorts},
		{"versions of cohorts", testCohortVersions},
		{"actions", testActions},
		{"alerts", testAlerts},
		{"definitions of events and properties", testDefinitions},
		{"annotations", testAnnotations},
		{"deletions", testDeletions},
		{"deletions and the tables of endpoints", testDeletionRefills},
		{"projects that were deleted", testRemovals},
		{"how long events are kept", testRetention},
		{"what a project keeps", testUsage},
		{"purging what was deleted", testPurge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(exam{t, newPlace(t)}) })
	}
}

// at is the time of everything in these tests: its microseconds must survive.
var at = time.Date(2026, 2, 3, 4, 5, 6, 789012000, time.UTC)

// open opens a store that is closed with the test.
func open(t exam) registry.Store {
	t.Helper()
	s := t.place(t.T)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return s
}
