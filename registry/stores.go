package registry

import (
	"context"
	"strings"
)

// StoreType is how stores of a DSN scheme are opened.
type StoreType struct {
	Scheme string
	// Open opens the store of a DSN, and creates it if it does not exist. An empty DSN means the default in dataDir. One that can't be
	// reached now, and may be without anybody's doing, is ErrUnavailable.
	Open func(ctx context.Context, dsn, dataDir string) (Store, error)
	// Inspect says what Open would do to the data of a DSN, and changes nothing. Its errors are as those of Open. Nil for stores that can't tell.
	Inspect func(ctx context.Context, dsn, dataDir string) (StoreState, error)
	// Check reports what is wrong with a DSN. Its error holds no password.
	Check func(dsn string) error
}

// defaultScheme is that of the empty DSN, and of one that names no other store.
const defaultScheme = "sqlite"

var storeTypes = make(map[string]StoreType)

// RegisterStore registers the stores of a DSN scheme. Call it in an init function.
func RegisterStore(t StoreType) { storeTypes[t.Scheme] = t }

// OpenStore opens the store that a DSN names.
func OpenStore(ctx context.Context, dsn, dataDir string) (Store, error) {
	return storeType(dsn).Open(ctx, dsn, dataDir)
}

// StoreState is how the data of a store compares with what this program keeps.
type StoreState struct {
	Name    string // for messages, such as the path of a file
	Version int    // of the data; 0 where there is none yet
	Current int    // of what this program keeps, and brings older data to
	Upgrade string // what Open does to older data, and where a copy of it stays; empty for nothing
}

// InspectStore says what OpenStore would do to the data of a DSN. It changes nothing. A store that can't tell has the zero state.
func InspectStore(ctx context.Context, dsn, dataDir string) (StoreState, error) {
	inspect := storeType(dsn).Inspect
	if inspect == nil {
		return StoreState{}, nil
	}
	return inspect(ctx, dsn, dataDir)
}

// CheckDSN reports what is wrong with the DSN of a store. Its error holds no password.
func CheckDSN(dsn string) error { return storeType(dsn).Check(dsn) }

func storeType(dsn string) StoreType {
	scheme, _, _ := strings.Cut(dsn, ":")
	if t, known := storeTypes[scheme]; known {
		return t
	}
	t, known := storeTypes[defaultScheme]
	if !known {
		panic("BUG: no registry store is compiled in")
	}
	return t
}
