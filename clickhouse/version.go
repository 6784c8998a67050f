package clickhouse

import (
	"fmt"
	"strconv"
	"strings"
)

// LeastVersion is the oldest ClickHouse that is asked. Properties are read from columns of the type JSON, which is ready for production
// since 25.3, and since 25.8 a name with a dot is told from a path (json_type_escape_dots_in_keys). The other settings that change what
// a query means, and the functions that queries are printed with, are older.
const LeastVersion = "25.8"

// oldError says that a server is too old.
type oldError struct {
	version string
	lacks   string // a setting; empty when the version alone is the reason
}

func (e *oldError) Error() string {
	if e.lacks != "" {
		return fmt.Sprintf("ClickHouse %s is too old: it has no setting %s; the least version is %s", e.version, e.lacks, LeastVersion)
	}
	return fmt.Sprintf("ClickHouse %s is too old: the least version is %s", e.version, LeastVersion)
}

// check refuses a server that is too old, or lacks the second tenant fence.
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

// olderThan compares the first two numbers of versions. A version that is no numbers is not older: a build of one's own.
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
