package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// StoreType says how to open the stores of a DSN scheme.
type StoreType struct {
	Scheme string
	// Open opens the store of a DSN, and creates it if it does not exist. An empty DSN means the default store in dataDir. If the store can't be reached now, but
	// may become reachable by itself, the error is ErrUnavailable.
	Open func(ctx context.Context, dsn, dataDir string) (Store, error)
	// Inspect says what Open would do to the data of a DSN, and changes nothing. Its errors are like those of Open. Nil for stores that can't tell.
	Inspect func(ctx context.Context, dsn, dataDir string) (StoreState, error)
	// Check reports what is wrong with a DSN. Its error contains no password.
	Check func(dsn string) error
}

// defaultScheme is the scheme of the empty DSN, and of a DSN that names no other store.
const defaultScheme = "sqlite"

var storeTypes = make(map[string]StoreType)

// RegisterStore registers the stores of a DSN scheme. Call it in an init function.
func RegisterStore(t StoreType) { storeTypes[t.Scheme] = t }

// OpenStore opens the store that a DSN names.
func OpenStore(ctx context.Context, dsn, dataDir string) (Store, error) {
	return storeType(dsn).Open(ctx, dsn, dataDir)
}

// StoreState compares the data of a store with what this program writes.
type StoreState struct {
	Name    string // for messages, such as the path of a file
	Version int    // of the data; 0 if there is none yet
	Current int    // the version that this program writes, and upgrades older data to
	Upgrade string // what Open does to older data, and where it leaves a copy; empty for nothing
}

// InspectStore says what OpenStore would do to the data of a DSN. It changes nothing. For a store that can't tell, it returns the zero state.
func InspectStore(ctx context.Context, dsn, dataDir string) (StoreState, error) {
	inspect := storeType(dsn).Inspect
	if inspect == nil {
		return StoreState{}, nil
	}
	return inspect(ctx, dsn, dataDir)
}

// CheckDSN reports what is wrong with the DSN of a store. Its error contains no password.
func CheckDSN(dsn string) error {
	scheme, _, _ := strings.Cut(dsn, ":")
	if _, known := storeTypes[scheme]; !known && dsn != "" {
		return fmt.Errorf("the DSN must begin with one of the schemes %s", strings.Join(slices.Sorted(maps.Keys(storeTypes)), ", "))
	}
	return storeType(dsn).Check(dsn)
}

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
