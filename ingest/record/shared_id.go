package record

import "strings"

// sharedIDs are distinct ids that clients send by mistake, so that many people have them.
var sharedIDs = func() map[string]bool {
	ids := map[string]bool{}
	for _, id := range []string{
		"0", "00000000-0000-0000-0000-000000000000", "[object object]", "anonymous", "anonymous-user", "backend", "distinct_id", "distinctid",
		"email", "false", "guest", "id", "nan", "none", "not_authenticated", "null", "system", "true", "undefined", "user",
	} {
		ids[id] = true
	}
	return ids
}()

// longestSharedID is more than any of them has, in bytes.
const longestSharedID = 50

// IsSharedID reports whether a distinct id is one that many people have by mistake, whatever its case: the newest capture route takes its events without their
// person (contract: capture.md, section 11).
func IsSharedID(id string) bool { return len(id) <= longestSharedID && sharedIDs[strings.ToLower(id)] }
