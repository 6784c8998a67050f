// Package startpages keeps the memory of an idle process small. Code runs at the start of a process that never runs again, above all the
// initialization of packages and of libraries; what it touched stays in memory, with its surroundings, until somebody gives it back.
package startpages

import (
	"sync"
	"time"
)

// settling is how long a process runs until what it needs at its start has run.
const settling = 5 * time.Second

var once sync.Once

// TrimLater calls Trim once in the life of the process, some seconds from now. It does not wait.
func TrimLater() {
	once.Do(func() {
		time.AfterFunc(settling, func() { _, _ = Trim() }) // a system that refuses keeps the pages
	})
}
