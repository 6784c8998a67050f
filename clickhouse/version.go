package clickhouse

import (
	"fmt"
	"strconv"
	"strings"
)

// LeastVersion is the oldest supported version of ClickHouse. Properties are read from JSON columns, which are production-ready since
// 25.3; 25.8 distinguishes a name with a dot from a path (json_type_escape_dots_in_keys). All other settings that affect the meaning of
// a query, and all functions in printed queries, are older.
const LeastVersion = "25.8"

// oldError is the error for a server that is too old.
type oldError struct {
	version string
	lacks   string // a missing setting; empty if only the version is the reason
}

func (e *oldError) Error() string {
	if e.lacks != "" {
		return fmt.Sprintf("ClickHouse %s is too old: it has no setting %s; the minimum version is %s", e.version, e.lacks, LeastVersion)
	}
	return fmt.Sprintf("ClickHouse %s is too old: the minimum version is %s", e.version, LeastVersion)
}

// check returns an error for a server that is too old, or lacks the settings of the second tenant fence.
func (s *server) check() error {
	old := &oldError{version: s.version}
	for _, name := range requiredSettings {
		if !s.settings[name] {
			old.lacks = name
			break
		}
	}
	if old.lacks == "" && !olderThan(s.version, LeastVersion) {
		return nil
	}
	return &Error{Kind: Unavailable, Message: old.Error(), cause: old}
}

// olderThan compares the first two numbers of versions. A version without numbers, as in a custom build, is not older.
func olderThan(version, least string) bool {
	have, ok := yearAndMonth(version)
	want, known := yearAndMonth(least)
	return ok && known && (have[0] < want[0] || have[0] == want[0] && have[1] < want[1])
}

func yearAndMonth(version string) (numbers [2]int, ok bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return numbers, false
	}
	for i := range numbers {
		n, err := strconv.Atoi(parts[i])
		if err != nil {
			return numbers, false
		}
		numbers[i] = n
	}
	return numbers, true
}
