package registry_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

func TestTokenSecrets(t *testing.T) {
	path := sqlitetest.Path(t)
	r := openAt(t, path, registry.Options{})
	p := must(r.CreateProject(t.Context(), registry.NewProject{Name: "p", Timezone: "UTC"}, now))(t)
	first := must(r.TokenSecret(t.Context(), p.ID, now))(t)
	if again := must(r.TokenSecret(t.Context(), p.ID, now.Add(time.Hour)))(t); again != first {
		t.Errorf("asked twice, it is %s and %s", first, again)
	}
	believed := func(want ...registry.TokenSecret) {
		t.Helper()
		for name, seen := range map[string]*registry.Registry{"here": r, "elsewhere": openAt(t, path, registry.Options{})} {
			if diff := cmp.Diff(want, seen.Snapshot().TokenSecrets(p.ID)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
	believed(first)
	second := must(r.RotateTokenSecret(t.Context(), p.ID, false, now.Add(-time.Hour)))(t) // a clock that was put back
	believed(second, first)
	third := must(r.RotateTokenSecret(t.Context(), p.ID, false, now.Add(time.Hour)))(t)
	believed(third, second)
	last := must(r.RotateTokenSecret(t.Context(), p.ID, true, now.Add(2*time.Hour)))(t)
	believed(last)
	if got := must(r.TokenSecret(t.Context(), p.ID, now))(t); got != last {
		t.Errorf("%s signs, want %s", got, last)
	}
	if _, err := r.TokenSecret(t.Context(), 9, now); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("TokenSecret() of an unknown project = %v", err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, last); !strings.HasSuffix(text, "token secret "+last.ID) {
			t.Errorf("%s shows %s", verb, text)
		}
	}
}
