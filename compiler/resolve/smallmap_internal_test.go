package resolve

import (
	"strconv"
	"testing"
)

// TestSmallMap looks up every key after every put, beyond the size at which the map is used.
func TestSmallMap(t *testing.T) {
	var f smallMap[int]
	for n := range 3 * indexAbove {
		if f.at(strconv.Itoa(n)) != nil {
			t.Fatalf("%d is there before it was put", n)
		}
		f.put(strconv.Itoa(n), n)
		*f.at(strconv.Itoa(n / 2)) += 1000
		for k := range n + 1 {
			if v := f.at(strconv.Itoa(k)); v == nil || *v%1000 != k || f.entries[k].key != strconv.Itoa(k) {
				t.Fatalf("after %d puts: %d is %v", n+1, k, v)
			}
		}
	}
	if *f.at("0") != 2000 || *f.at("5") != 2005 || *f.at("47") != 47 {
		t.Errorf("changes are lost: %v", f.entries)
	}
}

func TestNames(t *testing.T) {
	var n names
	for _, want := range []string{"a", "a_2", "a_3"} {
		if got := n.unique("a"); got != want {
			t.Errorf("unique(a) = %q, want %q", got, want)
		}
	}
	for _, tt := range []struct{ in, want string }{{"a_2", "a_2_2"}, {"b_2", "b_2"}, {"b", "b"}, {"b", "b_3"}, {"a", "a_4"}} {
		if got := n.unique(tt.in); got != tt.want {
			t.Errorf("unique(%s) = %q, want %q", tt.in, got, tt.want)
		}
	}
}
