package materialize

// Look begins the fills that are due, as the filler does itself once in a while.
func (f *Filler) Look() { f.look() }

// Idle reports whether no fill is in progress.
func (f *Filler) Idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.filling) == 0
}
