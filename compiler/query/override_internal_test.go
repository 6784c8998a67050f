package query

import (
	"strconv"
	"testing"
)

// Clients may send thousands of variables, and any number of overrides for them: the work is linear in both.
func TestReplacementsAreLinear(t *testing.T) {
	const many = 2_000
	own, over := map[string]string{}, map[string]string{}
	for i := range many {
		own["own"+strconv.Itoa(i)], over["over"+strconv.Itoa(i)] = "same", "same"
	}
	read := 0
	got := replacements(own, over, func(name string) string { read++; return name })
	if len(got) != many || got["own0"] != "over999" {
		t.Errorf("%d of %d variables are replaced, the first by %q", len(got), many, got["own0"])
	}
	if read > 2*many {
		t.Errorf("code names were read %d times for %d variables and as many overrides", read, many)
	}
}
