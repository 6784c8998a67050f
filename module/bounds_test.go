package module

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMistakesOfShardsAreInOrder: the same config always fails with the same text.
func TestMistakesOfShardsAreInOrder(t *testing.T) {
	var want []string
	a := &App{Shards: map[string]string{}}
	a.setDefaults()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		a.Shards[name] = "clickhouse://ch:9000/analytics"
		want = append(want, "clickhouse shard "+name+": the embedded engine has no shards; set clickhouse to a server")
	}
	err := a.Validate()
	if err == nil {
		t.Fatal("shards of the embedded engine are accepted")
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), err.Error()); diff != "" {
		t.Errorf("Validate() (-want +got):\n%s", diff)
	}
}
