package registrytest

import (
	"regexp"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func testCaptureTokens(t exam) {
	p := newPair(t)
	shop, other := p.project(), p.project()
	theirs := p.Snapshot().CaptureToken(other.ID)
	mistake := &registry.FieldError{Code: registry.CodeLimit}
	first := p.Snapshot().CaptureTokens(shop.ID)[0]
	are := func(want ...registry.CaptureToken) {
		t.Helper()
		all := p.settled()
		same(t, "tokens", want, all[0].Captures)
		for _, r := range []*registry.Registry{p.Registry, p.other} {
			for _, c := range want {
				if id, ok := r.Snapshot().ProjectOfCaptureToken(c.Token); id != shop.ID || !ok {
					t.Errorf("%s is of project %d, %t", c.Token, id, ok)
				}
			}
			same(t, "the newest token", want[0].Token, r.Snapshot().CaptureToken(shop.ID))
			if id, ok := r.Snapshot().ProjectOfCaptureToken(theirs); id != other.ID || !ok {
				t.Errorf("the other project's token is of project %d, %t", id, ok)
			}
		}
	}
	are(first)
	if !regexp.MustCompile(`^phc_[A-Za-z0-9]{20,60}$`).MatchString(first.Token) {
		t.Errorf("%q is not a capture token", first.Token)
	}
	second := must(p.RotateCaptureToken(t.Context(), shop.ID, at))(t) // at the same time: it is newer all the same
	are(second, first)

	p.refused("revoking another project's token", registry.ErrNotFound, func() error { return p.RevokeCaptureToken(t.Context(), shop.ID, theirs) })
	p.refused("revoking an unknown token", registry.ErrNotFound, func() error { return p.RevokeCaptureToken(t.Context(), shop.ID, "phc_x") })
	must(0, p.RevokeCaptureToken(t.Context(), shop.ID, first.Token))(t)
	are(second)
	if _, ok := p.Snapshot().ProjectOfCaptureToken(first.Token); ok {
		t.Error("a revoked token is good")
	}
	p.refused("revoking the only token", mistake, func() error { return p.RevokeCaptureToken(t.Context(), shop.ID, second.Token) })

	all := []registry.CaptureToken{second}
	for len(all) < 10 {
		all = append(all, must(p.RotateCaptureToken(t.Context(), shop.ID, at.Add(time.Duration(len(all))*time.Hour)))(t))
	}
	slices.Reverse(all)
	are(all...)
	p.refused("an eleventh token", mistake, func() error { _, err := p.RotateCaptureToken(t.Context(), shop.ID, at); return err })
	p.refused("a token of no project", registry.ErrNotFound, func() error { _, err := p.RotateCaptureToken(t.Context(), 99, at); return err })

	must(0, p.AddCaptureTokens(t.Context(), at))(t)
	are(all...)
}
