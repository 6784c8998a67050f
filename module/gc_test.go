package module

import (
	"runtime/debug"
	"testing"
)

func TestGrowth(t *testing.T) {
	for _, tt := range []struct {
		name            string
		allocated, live uint64
		want            int
	}{
		{"nothing happens", 0, 12 << 20, 100},
		{"little happens", busyRate - 1, 12 << 20, 100},
		{"much happens", busyRate, 20 << 20, 300},
		{"a server that keeps nothing", 1 << 30, 0, 400},
		{"a large heap", 1 << 30, 64 << 20, 100},
		{"a larger heap", 1 << 30, 1 << 30, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := growth(tt.allocated, tt.live); got != tt.want {
				t.Errorf("growth(%d, %d) = %d, want %d", tt.allocated, tt.live, got, tt.want)
			}
		})
	}
}

// TestHeap: the names of the runtime's metrics are right.
func TestHeap(t *testing.T) {
	if allocated, live := heap(); allocated == 0 || live == 0 {
		t.Errorf("allocated %d, live %d", allocated, live)
	}
}

// TestTuneGC: the collector is reset when tuning ends, and is left alone if the operator has chosen a setting.
func TestTuneGC(t *testing.T) {
	before := debug.SetGCPercent(300)
	defer debug.SetGCPercent(before)
	for chosen, want := range map[string]int{"300": 300, "": defaultPercent} {
		t.Setenv("GOGC", chosen)
		_, closeIt, err := tuneGC()
		if err != nil {
			t.Fatal(err)
		}
		if err := closeIt(); err != nil {
			t.Fatal(err)
		}
		if got := debug.SetGCPercent(300); got != want {
			t.Errorf("with GOGC=%q: %d afterwards, want %d", chosen, got, want)
		}
	}
}
