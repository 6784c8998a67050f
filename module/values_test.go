package module

import (
	"encoding/json"
	"testing"
	"time"
)

func TestRateText(t *testing.T) {
	for text, want := range map[string]Rate{"240/m": {240, time.Minute}, "20/s": {20, time.Second}, "5/h": {5, time.Hour}} {
		var got Rate
		if err := json.Unmarshal([]byte(`"`+text+`"`), &got); err != nil || got != want {
			t.Errorf("%s reads as %v, %v", text, got, err)
		}
		if back, err := json.Marshal(got); err != nil || string(back) != `"`+text+`"` {
			t.Errorf("%s is written as %s, %v", text, back, err)
		}
	}
	for _, text := range []string{"", "240", "/m", "0/m", "-1/m", "240/d", "1e3/m"} {
		if _, err := ParseRate(text); err == nil {
			t.Errorf("%q is taken for a rate", text)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{`"512MiB"`: 512 << 20, `"1GB"`: 1e9, `1024`: 1024} {
		var got Size
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s reads as %d, %v", text, got, err)
		}
	}
	for _, text := range []string{`"lots"`, `true`, `"-1"`} {
		var got Size
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is taken for a size", text)
		}
	}
}
