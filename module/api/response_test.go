package api_test

import (
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

func TestCacheStatus(t *testing.T) {
	tests := map[cache.Status]string{
		cache.Hit:        "caddy-analytics; hit; ttl=90",
		cache.Miss:       "caddy-analytics; fwd=miss; stored",
		cache.Stale:      "caddy-analytics; hit; ttl=0; detail=revalidating",
		cache.StaleError: "caddy-analytics; hit; ttl=0; detail=database-unavailable",
		cache.Coalesced:  "caddy-analytics; fwd=miss; collapsed",
		cache.Refreshed:  "caddy-analytics; fwd=request; stored",
		cache.Pinned:     "caddy-analytics; hit; ttl=0; detail=pinned",
	}
	renewed := new(cache.Entry).Renew(time.Now(), nil, 0)
	for _, status := range []cache.Status{cache.Renewed, cache.Hit} {
		const want = "caddy-analytics; hit; ttl=90; detail=unchanged"
		if got := string(api.AppendCacheStatus(nil, cache.Answer{Status: status, Entry: renewed, FreshFor: 90 * time.Second})); got != want {
			t.Errorf("%s of rows that were found unchanged: %s, want %s", status, got, want)
		}
	}
	for status, want := range tests {
		if got := string(api.AppendCacheStatus(nil, cache.Answer{Status: status, FreshFor: 90*time.Second + time.Millisecond})); got != want {
			t.Errorf("%s: %s, want %s", status, got, want)
		}
	}
}

// TestBucketsOfAnswers: an answer put together from buckets says how many of them were computed.
func TestBucketsOfAnswers(t *testing.T) {
	some, all := execution.Buckets{Computed: 1, All: 90}, execution.Buckets{Computed: 90, All: 90}
	for _, tt := range []struct {
		status  cache.Status
		buckets execution.Buckets
		want    string
	}{
		{cache.Miss, some, `caddy-analytics; fwd=partial; stored; detail="1 of 90 buckets computed"`},
		{cache.Miss, all, `caddy-analytics; fwd=miss; stored; detail="90 of 90 buckets computed"`},
		{cache.Coalesced, some, `caddy-analytics; fwd=partial; collapsed; detail="1 of 90 buckets computed"`},
		{cache.Hit, some, `caddy-analytics; hit; ttl=0`},
	} {
		answer := cache.Answer{Status: tt.status, Entry: cache.NewEntry(&cache.Result{}, time.Now(), &execution.Details{Buckets: tt.buckets}, 0)}
		if got := string(api.AppendCacheStatus(nil, answer)); got != tt.want {
			t.Errorf("%s, %v: %s, want %s", tt.status, tt.buckets, got, tt.want)
		}
	}
	for want, spent := range map[string]api.Spent{
		`total;dur=2.000, compile;dur=1.000, clickhouse;dur=1.000, buckets;desc="1 of 90"`: {Compile: time.Millisecond, ClickHouse: time.Millisecond, Buckets: some},
		`total;dur=2.000, compile;dur=1.000, buckets;desc="0 of 90"`:                       {Compile: time.Millisecond, Buckets: execution.Buckets{All: 90}},
		`total;dur=2.000`: {},
	} {
		if got := string(spent.Append(nil, 2*time.Millisecond)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
