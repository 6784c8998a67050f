package warehouse

import "errors"

// EndProbesEarly makes a probe end after its first query.
func (w *Warehouse) EndProbesEarly() { w.prober.budget = 0 }

// FailMutation records that a statement that changes rows of a table failed.
func (w *Warehouse) FailMutation(project int64, table string) {
	w.changes.begin(project, &change{table: table, kind: mutation})(errors.New("the connection broke"))
}

// Histories returns for how many projects something is known.
func (w *Warehouse) Histories() int {
	w.changes.mu.Lock()
	defer w.changes.mu.Unlock()
	return len(w.changes.projects)
}
