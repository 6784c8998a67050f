package warehouse

import (
	"context"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// busy is a table in which rows are deleted during its first erasure.
type busy struct{ erased int }

func (b *busy) Erase(context.Context, string) (time.Time, error) {
	b.erased++
	return time.Unix(int64(b.erased), 0), nil
}

// Unerased has parts with hidden rows until the second erasure, and then an old part once.
func (b *busy) Unerased(_ context.Context, _ string, before time.Time) (r clickhouse.Remains, err error) {
	switch {
	case before.Unix() != 1:
		return clickhouse.Remains{Old: 1}, nil // a later time never completes
	case b.erased == 1:
		return clickhouse.Remains{Masked: 1, Statements: 1}, nil
	}
	return r, nil
}

// TestErasesAgain: rows deleted during an erasure do not prevent its completion.
func TestErasesAgain(t *testing.T) {
	b := &busy{}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := eraseTables(ctx, b, []string{"events"}, time.Millisecond); err != nil || b.erased != 2 {
		t.Errorf("erased %d times, %v", b.erased, err)
	}
}
