package warehouse

// EndProbesEarly has a probe end after its first query.
func (w *Warehouse) EndProbesEarly() { w.prober.budget = 0 }
