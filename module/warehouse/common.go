package warehouse

import (
	"sync"

	"golang.org/x/sync/semaphore"
)

// Common is what the warehouses of this process share if they are on the same ClickHouse. Several are open after a reload, while requests that began
// before it still use the old one: each must know what the others change, and a backup must hold all of them. A nil *Common shares nothing.
type Common struct {
	mu sync.Mutex
	of map[string]*common // by DSN
}

// NewCommon returns a Common that nothing shares yet.
func NewCommon() *Common { return &Common{of: map[string]*common{}} }

// common is what the warehouses on one ClickHouse share.
type common struct {
	changes *changes
	gate    *semaphore.Weighted // holds one unit for each batch being written
}

func newCommon() *common { return &common{newChanges(), semaphore.NewWeighted(writers)} }

func (c *Common) on(dsn string) *common {
	if c == nil {
		return newCommon()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.of[dsn]
	if found == nil {
		found = newCommon()
		c.of[dsn] = found
	}
	return found
}
