package module

import (
	"encoding/json"
	"testing"
)

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
