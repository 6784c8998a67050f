package ingest

import "github.com/google/uuid"

// Before has f called before each insert, which fails with its error.
func (i *Ingester) Before(f func(table string) error) { i.inserting = f }

// PersonUUID is the id of the person that a distinct id makes.
func PersonUUID(project int64, distinctID string) uuid.UUID { return personUUID(project, distinctID) }
