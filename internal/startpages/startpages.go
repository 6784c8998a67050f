// Package startpages keeps the memory of an idle process small. Some code runs only when a process starts, mostly the initialization of packages and
// libraries. The pages that it touched, and those around them, stay in memory until they are given back.
package startpages

import (
	"sync"
	"time"
)

// settling is the age at which a process has run the code that it needs only at its start.
const settling = 5 * time.Second

var once sync.Once

// TrimLater calls Trim once in the life of the process, some seconds from now. It does not wait.
func TrimLater() {
	once.Do(func() {
		time.AfterFunc(settling, func() { _, _ = Trim() }) // a system that refuses keeps the pages
	})
}
